import type { ChannelName } from "../../../events/channel.ts";
import { systemClock } from "../../platform/clock.ts";
import type { DeadLetter } from "../../delivery/dead-letters.ts";
import type { Channel } from "../../networks/network.ts";
import { connectNetworks } from "../../service/networks.ts";
import { Command, configOf, type MakeCommand, type Terminal } from "../command.ts";
import { channelOption, channelsOf } from "./channel-name.ts";
import { choiceOf, decideLetters, type Choice } from "./letters.ts";

export const retry: MakeCommand = (terminal, exit) =>
  new Command("retry")
    .summary("send dead letters again")
    .description(
      `Makes those dead letters pending again; a running service sends them at once, else
the next start does. It leaves those as they are that may have arrived and that
the network would not know again.`,
    )
    .argument("[event_ids...]", "the dead letters, as deliveries list names them")
    .option("--all", "all dead letters")
    .addOption(channelOption())
    .option("--accept-doubles", "send those too that may have arrived")
    .addHelpText("after", "\nExample:\n  reachlog deliveries retry --all --channel messaging")
    .action(
      exit(async (ids, { all, channel, acceptDoubles }) => {
        const choice = choiceOf("retry", { all: all === true, ids, channels: channelsOf(channel) });
        return await retryLetters(terminal, choice, acceptDoubles === true);
      }),
    );

async function retryLetters(terminal: Terminal, choice: Choice, acceptsDoubles: boolean): Promise<number> {
  const config = configOf(terminal);
  const { channels } = connectNetworks(config);
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
}

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
