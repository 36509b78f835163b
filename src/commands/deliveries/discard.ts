import { discardLetters, WHY_CHARACTERS_MAX } from "../../delivery/dead-letters.ts";
import { Command, JSON_OPTION, usageError, type MakeCommand } from "../command.ts";
import { COMMAND_METADATA } from "../log-session.ts";
import { channelOption, channelsOf } from "./channel-name.ts";
import { toSelection, decideByCommand } from "./letters.ts";

export const discard: MakeCommand = (terminal, exit) =>
  new Command("discard")
    .summary("give dead letters up for good")
    .description("Gives those dead letters up for good; the log keeps why. They cannot be taken up again.")
    .argument("[event_ids...]", "the dead letters, as deliveries list names them")
    .option("--all", "all dead letters")
    .requiredOption("--why <text>", `why, in 1 to ${WHY_CHARACTERS_MAX} characters`)
    .addOption(channelOption())
    .option(...JSON_OPTION)
    .addHelpText("after", '\nExample:\n  reachlog deliveries discard --all --channel ads --why "the account is closed"')
    .action(
      exit(async (ids, { all, why: given, channel: name, json }) => {
        const why = given.trim();
        if (why.length === 0 || why.length > WHY_CHARACTERS_MAX) {
          throw usageError(`discard wants --why, in 1 to ${WHY_CHARACTERS_MAX} characters`);
        }
        const choice = toSelection("discard", { all: all === true, ids, channels: channelsOf(name) });
        return await decideByCommand(terminal, choice, { done: "discarded", json: json === true }, (deps) =>
          discardLetters(deps, choice, why, COMMAND_METADATA),
        );
      }),
    );
