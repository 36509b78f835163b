import { parse, UsageError } from "../command.ts";
import type { DeliveriesAction } from "./action.ts";
import { channelsOf } from "./channel-name.ts";
import { choiceOf, decideLetters } from "./letters.ts";

/** A sentence or two for whoever reads the log later. */
const WHY_CHARACTERS_MAX = 500;

export const discard: DeliveriesAction = {
  usage: "discard (--all | EVENT_ID ...) --why TEXT [--channel NAME]",
  help: `discard  gives those dead letters up for good; the log tells why, in up to
         ${WHY_CHARACTERS_MAX} characters. They cannot be taken up again
`,
  async run(args, terminal) {
    const { values, positionals } = parse(
      args,
      {
        channel: { type: "string" },
        all: { type: "boolean", default: false },
        why: { type: "string", default: "" },
      },
      Infinity,
    );
    const why = values.why.trim();
    if (why.length === 0 || why.length > WHY_CHARACTERS_MAX) {
      throw new UsageError(`discard wants --why, in 1 to ${WHY_CHARACTERS_MAX} characters`);
    }
    const choice = choiceOf("discard", { all: values.all, ids: positionals, channels: channelsOf(values.channel) });
    return await decideLetters(terminal, choice, {
      done: "discarded",
      of: ({ event_id, source, channel }) => ({
        type: "DispatchDiscarded",
        data: { event_id, source, channel, why },
      }),
    });
  },
};
