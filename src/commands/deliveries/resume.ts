import { STREAMS, type NewEvent } from "../../log/event-log.ts";
import { configOf, EXIT, parse, UsageError } from "../command.ts";
import { COMMAND_METADATA, openExistingLog, openSession } from "../log-session.ts";
import type { DeliveriesAction } from "./action.ts";
import { channelOf } from "./channel-name.ts";

export const resume: DeliveriesAction = {
  usage: "resume CHANNEL",
  help: `resume   goes on with a channel that is stopped: a running service sends what it
         owes at once, and stops it again if the network still refuses it
`,
  async run(args, terminal) {
    const { positionals } = parse(args, {}, 1);
    const [name] = positionals;
    if (name === undefined) throw new UsageError("resume wants one channel");
    const channel = channelOf(name);
    await using stack = new AsyncDisposableStack();
    const { eventLog, projector } = await openSession(stack, await openExistingLog(configOf(terminal)));
    const { stopped } = projector.state("deliveries")[channel];
    if (stopped === null) {
      terminal.err(`${channel} is not stopped\n`);
      return EXIT.fault;
    }
    const newEvent: NewEvent = { type: "ChannelResumed", data: { channel, why: "by_hand" } };
    // Each stop is ended by hand once, however many ask for it at the same moment.
    const key = `resume/${channel}/${stopped.since}`;
    const { repeated } = await eventLog.append(STREAMS.delivery(channel), [newEvent], COMMAND_METADATA, { key });
    terminal.out(
      repeated
        ? `${channel} was resumed at the same moment\n`
        : `${channel} is resumed, stopped since ${stopped.since}\n`,
    );
    return EXIT.ok;
  },
};
