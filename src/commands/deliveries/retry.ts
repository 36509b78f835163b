import { parse } from "../command.ts";
import type { DeliveriesAction } from "./action.ts";
import { channelsOf } from "./channel-name.ts";
import { choiceOf, decideLetters } from "./letters.ts";

export const retry: DeliveriesAction = {
  usage: "retry (--all | EVENT_ID ...) [--channel NAME]",
  help: `retry    owes those dead letters again; a running service sends them at once,
         else the next start does
`,
  async run(args, terminal) {
    const { values, positionals } = parse(args, {
      channel: { type: "string" },
      all: { type: "boolean", default: false },
    });
    const choice = choiceOf("retry", { all: values.all, ids: positionals, channels: channelsOf(values.channel) });
    return await decideLetters(terminal, choice, {
      done: "taken up again",
      needsChannel: true,
      of: ({ event_id, source, channel }) => ({
        type: "ChannelDispatchRetryRequested",
        data: { event_id, source, channel },
      }),
    });
  },
};
