import type { ChannelName } from "../../../events/channel.ts";
import { retryLetters, type LetterSelection } from "../../delivery/dead-letters.ts";
import { systemClock } from "../../platform/clock.ts";
import { connectNetworks } from "../../service/networks.ts";
import { Command, configOf, JSON_OPTION, type MakeCommand, type Terminal } from "../command.ts";
import { COMMAND_METADATA } from "../log-session.ts";
import { channelOption, channelsOf } from "./channel-name.ts";
import { toSelection, decideByCommand } from "./letters.ts";

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
    .option(...JSON_OPTION)
    .addHelpText("after", "\nExample:\n  reachlog deliveries retry --all --channel messaging")
    .action(
      exit(async (ids, { all, channel, acceptDoubles, json }) => {
        const selection = toSelection("retry", { all: all === true, ids, channels: channelsOf(channel) });
        return await retryByCommand(terminal, selection, {
          acceptsDoubles: acceptDoubles === true,
          json: json === true,
        });
      }),
    );

function retryByCommand(
  terminal: Terminal,
  selection: LetterSelection,
  { acceptsDoubles, json }: { readonly acceptsDoubles: boolean; readonly json: boolean },
): Promise<number> {
  const { channels } = connectNetworks(configOf(terminal));
  const recognisesMs = (name: ChannelName) => channels.find((channel) => channel.name === name)?.recognisesMs ?? 0;
  return decideByCommand(terminal, selection, { done: "taken up again", json }, (deps) =>
    retryLetters({ ...deps, recognisesMs, clock: systemClock }, selection, acceptsDoubles, COMMAND_METADATA),
  );
}
