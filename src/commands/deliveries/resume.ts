import { STREAMS, type NewEvent } from "../../log/event-log.ts";
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
        const { eventLog, projector } = await openSession(stack, await openExistingLog(configOf(terminal)));
        const { suspended } = projector.state("deliveries")[channel];
        if (suspended === null) {
          terminal.err(`${channel} is not suspended\n`);
          return EXIT.fault;
        }
        const newEvent: NewEvent = { type: "ChannelResumed", data: { channel, why: "by_hand" } };
        // Each suspension is ended by hand once, however many ask for it at the same moment.
        const key = `resume/${channel}/${suspended.since}`;
        const { repeated } = await eventLog.append(STREAMS.delivery(channel), [newEvent], COMMAND_METADATA, { key });
        terminal.out(
          repeated
            ? `${channel} was resumed at the same moment\n`
            : `${channel} is resumed, suspended since ${suspended.since}\n`,
        );
        return EXIT.ok;
      }),
    );
