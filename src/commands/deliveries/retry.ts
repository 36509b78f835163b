import type { ChannelName } from "../../../events/channel.ts";
import { systemClock } from "../../platform/clock.ts";
import type { DeadLetter } from "../../delivery/dead-letters.ts";
import type { Channel } from "../../networks/network.ts";
import { openChannels, outbound } from "../../service/open.ts";
import { configOf, parse } from "../command.ts";
import type { DeliveriesAction } from "./action.ts";
import { channelsOf } from "./channel-name.ts";
import { choiceOf, decideLetters } from "./letters.ts";

export const retry: DeliveriesAction = {
  usage: "retry (--all | EVENT_ID ...) [--channel NAME] [--accept-doubles]",
  help: `retry    owes those dead letters again; a running service sends them at once,
         else the next start does. Those that may have arrived, and that the network
         would not know again, it leaves as they are unless --accept-doubles is given
`,
  async run(args, terminal) {
    const { values, positionals } = parse(
      args,
      {
        channel: { type: "string" },
        all: { type: "boolean", default: false },
        "accept-doubles": { type: "boolean", default: false },
      },
      Infinity,
    );
    const choice = choiceOf("retry", { all: values.all, ids: positionals, channels: channelsOf(values.channel) });
    const acceptsDoubles = values["accept-doubles"];
    const config = configOf(terminal);
    const channels = openChannels(config, outbound(config));
    return await decideLetters(terminal, choice, {
      done: "taken up again",
      hindranceOf(letter, states) {
        const { channel } = letter;
        if (states[channel].suspended !== null) {
          return `${channel} is suspended and would turn them away: reachlog deliveries resume ${channel}`;
        }
        if (acceptsDoubles || !mayDouble(letter, channels)) return undefined;
        return whyNot(channel);
      },
      of(letter) {
        const { event_id, source, channel } = letter;
        const data = { event_id, source, channel, ...doubtOf(letter, acceptsDoubles) };
        return { type: "DispatchRetryRequested", data };
      },
    });
  },
};

/** What the next dispatch is to know of the attempts before, unless an operator has it sent whatever they came to. */
function doubtOf(
  { doubtful_since }: DeadLetter,
  acceptsDoubles: boolean,
): { readonly doubtful_since?: string; readonly may_double?: true } {
  if (doubtful_since === undefined) return {};
  return acceptsDoubles ? { may_double: true } : { doubtful_since };
}

/** Whether an attempt may have arrived that the network, as it is configured here, takes for another one by now. */
function mayDouble({ channel, doubtful_since }: DeadLetter, channels: readonly Channel[]): boolean {
  if (doubtful_since === undefined) return false;
  const recognisesMs = channels.find(({ name }) => name === channel)?.recognisesMs ?? 0;
  return systemClock() - Date.parse(doubtful_since) >= recognisesMs;
}

function whyNot(channel: ChannelName): string {
  return (
    `an attempt at letters of ${channel} may have arrived, and a repeat would count twice now: ` +
    "with --accept-doubles they are sent again all the same"
  );
}
