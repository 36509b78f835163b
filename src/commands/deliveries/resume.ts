import { resumeChannel } from "../../delivery/suspension.ts";
import { Command, configOf, EXIT, JSON_OPTION, type MakeCommand } from "../command.ts";
import { COMMAND_METADATA, openSession } from "../log-session.ts";
import { channelArgument } from "./channel-name.ts";

export const resume: MakeCommand = (terminal, exit) =>
  new Command("resume")
    .summary("go on with a suspended channel")
    .description(
      `Goes on with a channel that is suspended: a running service sends what is pending
at once, and suspends it again if the network still refuses it.`,
    )
    .addArgument(channelArgument())
    .option(...JSON_OPTION)
    .addHelpText("after", "\nExample:\n  reachlog deliveries resume chat")
    .action(
      exit(async (channel, { json }) => {
        await using session = await openSession(configOf(terminal));
        const ended = await resumeChannel(session, channel, COMMAND_METADATA);
        if (ended.kind === "not_suspended") {
          terminal.err(`${channel} is not suspended\n`);
          return EXIT.fault;
        }
        const { since, repeated } = ended;
        if (json === true) terminal.out(`${JSON.stringify({ channel, since, repeated })}\n`);
        else if (repeated) terminal.out(`${channel} was resumed at the same moment\n`);
        else terminal.out(`${channel} is resumed, suspended since ${since}\n`);
        return EXIT.ok;
      }),
    );
