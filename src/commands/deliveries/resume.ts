import { resumeChannel } from "../../delivery/resume.ts";
import { Command, configOf, EXIT, type MakeCommand } from "../command.ts";
import { COMMAND_METADATA, openExistingLog, openSession } from "../log-session.ts";
import { channelArgument } from "./channel-name.ts";

export const resume: MakeCommand = (terminal, exit) =>
  new Command("resume")
    .summary("go on with a suspended channel")
    .description(
      `Goes on with a channel that is suspended: a running service sends what is pending
at once, and suspends it again if the network still refuses it.`,
    )
    .addArgument(channelArgument())
    .addHelpText("after", "\nExample:\n  reachlog deliveries resume chat")
    .action(
      exit(async (channel) => {
        await using stack = new AsyncDisposableStack();
        const session = await openSession(stack, await openExistingLog(configOf(terminal)));
        const ended = await resumeChannel(session, channel, COMMAND_METADATA);
        if (ended.kind === "not_suspended") {
          terminal.err(`${channel} is not suspended\n`);
          return EXIT.fault;
        }
        terminal.out(
          ended.repeated
            ? `${channel} was resumed at the same moment\n`
            : `${channel} is resumed, suspended since ${ended.since}\n`,
        );
        return EXIT.ok;
      }),
    );
