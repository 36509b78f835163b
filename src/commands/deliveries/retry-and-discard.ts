import type { ChannelName } from "../../../events/channel.ts";
import {
  type Decided,
  discardLetters,
  type LetterSelection,
  type NotAppliedReason,
  retryLetters,
  WHY_CHARACTERS_MAX,
} from "../../delivery/dead-letters.ts";
import { findAt } from "../../history/find-event.ts";
import { Command, JSON_OPTION, type MakeCommand, usageError } from "../shared/command.ts";
import { answer, EXIT, type Terminal } from "../shared/terminal.ts";
import { COMMAND_METADATA, openSession, type Session } from "../shared/log-session.ts";
import { printable } from "../shared/table.ts";
import { connectNetworks } from "../../service/networks.ts";
import { channelOption, selectChannels } from "./channel-name.ts";

interface Given {
  readonly ids: readonly string[];
  readonly all?: boolean | undefined;
  readonly channel?: ChannelName | undefined;
}

/** Throws a ServiceError (usage) unless it is all letters or some that are named. */
function toSelection(action: string, { all = false, ids, channel }: Given): LetterSelection {
  if (all === ids.length > 0) throw usageError(`${action} needs --all, or event ids or positions`);
  return { ids: all ? undefined : ids, channels: selectChannels(channel) };
}

/**
 * Decides of the letters chosen and says of how many. Answers the exit code: a fault where one that was named is no
 * dead letter, or was decided by another caller at the same moment.
 */
async function decideByCommand(
  terminal: Terminal,
  selection: LetterSelection,
  { done, json }: { readonly done: string; readonly json: boolean | undefined },
  decide: (session: Session, selection: LetterSelection) => Promise<Decided>,
): Promise<number> {
  await using session = await openSession(terminal);
  const decided = await decide(session, await withIds(session, selection));
  answer(terminal, json, decided, `${decided.done} ${done}\n`);
  if (json !== true) for (const line of explainLeft(decided)) terminal.err(`${line}\n`);
  const faults = decided.left.filter(({ why }) => why !== "decided_meanwhile" || selection.ids !== undefined);
  return faults.length === 0 ? EXIT.ok : EXIT.fault;
}

/** Resolves positions to event ids. */
async function withIds(
  { eventLog: { store }, projector }: Session,
  selection: LetterSelection,
): Promise<LetterSelection> {
  if (selection.ids === undefined) return selection;
  const reading = { store, to: projector.position, onProgress: () => {} };
  const ids: string[] = [];
  for (const name of selection.ids) ids.push((await findAt(reading, name))?.id ?? name);
  return { ...selection, ids };
}

/** One sentence for each reason, and one for each event that is no dead letter. */
function explainLeft({ left }: Decided): readonly string[] {
  const reasons = new Set(
    left.flatMap(({ channel, why }) => (channel === null ? [] : (explainNotApplied(channel, why) ?? []))),
  );
  const unknown = left.filter(({ why }) => why === "no_dead_letter");
  const lost = left.filter(({ why }) => why === "decided_meanwhile").length;
  return [
    ...reasons,
    ...unknown.map(({ event_id }) => `${printable(event_id)} is no dead letter`),
    ...(lost === 0 ? [] : [`of ${lost} another caller decided at the same moment`]),
  ];
}

function explainNotApplied(channel: ChannelName, why: NotAppliedReason): string | undefined {
  if (why === "suspended") {
    return `${channel} is suspended and would turn them away: reachlog deliveries resume ${channel}`;
  }
  if (why !== "may_double") return undefined;
  return (
    `an attempt at letters of ${channel} may have arrived, and a repeat would count twice now: ` +
    "with --accept-doubles they are sent again all the same"
  );
}

export const retry: MakeCommand = (terminal, exit) =>
  new Command("retry")
    .summary("send dead letters again")
    .description(
      `Makes those dead letters pending again; a running service sends them at once, else
the next start does. It leaves those as they are that may have arrived and that
the network would not know again.`,
    )
    .argument("[event_ids...]", "the dead letters, as deliveries list names them, or their positions")
    .option("--all", "all dead letters")
    .addOption(channelOption())
    .option("--accept-doubles", "send also those that may have arrived")
    .option(...JSON_OPTION)
    .addHelpText("after", "\nExample:\n  reachlog deliveries retry --all --channel messaging")
    .action(
      exit((ids, { all, channel, acceptDoubles = false, json }) => {
        const selection = toSelection("retry", { all, ids, channel });
        return decideByCommand(terminal, selection, { done: "retried", json }, (session, letters) => {
          const { channels } = connectNetworks(session.config);
          const recognisesMs = (name: ChannelName) => channels.find((one) => one.name === name)?.recognisesMs ?? 0;
          const deps = { ...session, recognisesMs, clock: session.logClock.now };
          return retryLetters(deps, letters, acceptDoubles, COMMAND_METADATA);
        });
      }),
    );

export const discard: MakeCommand = (terminal, exit) =>
  new Command("discard")
    .summary("discard dead letters for good")
    .description("Discards dead letters for good; the log keeps the reason. They cannot be retried later.")
    .argument("[event_ids...]", "the dead letters, as deliveries list names them, or their positions")
    .option("--all", "all dead letters")
    .requiredOption("--why <text>", `why, in 1 to ${WHY_CHARACTERS_MAX} characters`)
    .addOption(channelOption())
    .option(...JSON_OPTION)
    .addHelpText("after", '\nExample:\n  reachlog deliveries discard --all --channel ads --why "the account is closed"')
    .action(
      exit((ids, { all, why: given, channel, json }) => {
        const why = given.trim();
        if (why.length === 0 || why.length > WHY_CHARACTERS_MAX) {
          throw usageError(`discard needs --why, in 1 to ${WHY_CHARACTERS_MAX} characters`);
        }
        const selection = toSelection("discard", { all, ids, channel });
        return decideByCommand(terminal, selection, { done: "discarded", json }, (session, letters) =>
          discardLetters(session, letters, why, COMMAND_METADATA),
        );
      }),
    );
