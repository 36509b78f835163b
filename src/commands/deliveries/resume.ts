import { STREAMS, type NewEvent } from "../../log/event-log.ts";
import { configOf, EXIT, parse, UsageError } from "../command.ts";
import { COMMAND_METADATA, openExistingLog, openSession } from "../log-session.ts";
import type { DeliveriesAction } from "./action.ts";
import { channelOf } from "./channel-name.ts";

export const resume: DeliveriesAction = {
  usage: "resume CHANNEL",
  help: `resume   goes on with a channel that is suspended: a running service sends what it
         owes at once, and suspensions it again if the network still refuses it
`,
  async run(args, terminal) {
    const { positionals } = parse(args, {}, 1);
    const [name] = positionals;
    if (name === undefined) throw new UsageError("resume wants one channel");
    const channel = channelOf(name);
    await using stack = new AsyncDisposableStack();
    const { eventLog, projector } = await openSession(stack, await openExistingLog(configOf(terminal)));
    const { suspended } = projector.state("deliveries")[channel];
    if (suspended === null) {
      terminal.err(`${channel} is not suspended\n`);
      return EXIT.fault;
    }
    const newEvent: NewEvent = { type: "ChannelResumed", data: { channel, why: "by_hand" } };
    // Each stop is ended by hand once, however many ask for it at the same moment.
    const key = `resume/${channel}/${suspended.since}`;
    const { repeated } = await eventLog.append(STREAMS.delivery(channel), [newEvent], COMMAND_METADATA, { key });
    terminal.out(
      repeated
        ? `${channel} was resumed at the same moment\n`
        : `${channel} is resumed, suspended since ${suspended.since}\n`,
    );
    return EXIT.ok;
  },
};
