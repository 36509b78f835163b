import type { ChannelName } from "../../../events/channel.ts";
import type { LetterStatus } from "../../../projections/dead-letters.ts";
import {
  type Decided,
  type DecisionOptions,
  discardLetters,
  type LetterSelection,
  type NotApplied,
  type NotAppliedReason,
  type NumberChanged,
  retryLetters,
  settleLetters,
  WHY_CHARACTERS_MAX,
} from "../../delivery/dead-letters.ts";
import { parseDispatchFilter, type FilterTexts } from "../../delivery/dead-letter-filter.ts";
import { countInWords } from "../../platform/counts-and-lists.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { findAt } from "../../history/find-event.ts";
import { Command, JSON_OPTION, type MakeCommand, Option, readConfig } from "../shared/command.ts";
import { answer, EXIT, fail, type Terminal, printable } from "../shared/terminal.ts";
import { COMMAND_METADATA, openSession } from "../shared/log-session.ts";
import type { Session } from "../../service/session.ts";
import { connectNetworks } from "../../service/networks.ts";
import { channelOption, errorOption, fromOption, linkOption, selectChannels, toOption } from "./filter-options.ts";
import { usageError } from "../../platform/service-error.ts";

interface Given extends FilterTexts {
  readonly all?: boolean | undefined;
  readonly yes?: boolean | undefined;
  readonly inDoubt?: boolean | undefined;
}

/** Throws a ServiceError (usage) unless it is all that match, or some that are named. */
function toSelection(
  { env, ask }: Terminal,
  action: string,
  ids: readonly string[],
  { all = false, yes = false, inDoubt = false, ...texts }: Given,
): LetterSelection {
  const { error, link, from, to } = texts;
  const isSettling = action === "settle";
  if (inDoubt && (all || ids.length !== 1)) throw usageError(`${action} --in-doubt needs one event id or position`);
  if (all === ids.length > 0) throw usageError(`${action} needs --all, or event ids or positions`);
  if (!all && [error, link, from, to].some((text) => text !== undefined))
    throw usageError("--error, --link, --from and --to need --all");
  if (all && !yes && ask === undefined)
    throw usageError(`${action} --all asks first: without a terminal it needs --yes`);
  const status = inDoubt || isSettling ? "in_doubt" : "dead";
  const filter = parseDispatchFilter({ ...texts, status }, readConfig({ env }).outreach.timezone);
  return { ids: all ? undefined : ids, filter };
}

type Decide = (
  session: Session,
  selection: LetterSelection,
  options: DecisionOptions,
) => Promise<Decided | NumberChanged>;

/** What is done, and what was done. */
const WORDS = {
  retry: { verb: "Retry", done: "retried" },
  discard: { verb: "Discard", done: "discarded" },
  settle: { verb: "Settle", done: "settled" },
} as const;

/**
 * Decides of the letters chosen and says of how many. Of all that match it names the number first, and asks. Answers the
 * exit code: a fault where one that was named is no dead letter, or was decided by another caller at the same moment.
 */
async function decideByCommand(
  terminal: Terminal,
  action: keyof typeof WORDS,
  ids: readonly string[],
  { json, ...given }: Given & { readonly json?: boolean | undefined },
  decide: Decide,
): Promise<number> {
  const { verb, done } = WORDS[action];
  const selection = toSelection(terminal, action, ids, given);
  await using session = await openSession(terminal);
  selectChannels(session.projector.state("deliveries"), selection.filter.channel);
  const named = await withIds(session, selection);
  const options =
    selection.ids === undefined && given.yes !== true ? await confirm(terminal, verb, named, session, decide) : {};
  if (options === undefined) return fail(terminal, `nothing was ${done}`);
  const { until, ...rest } = options;
  const decided = await decide(session, { ...named, ...omitUndefined({ until }) }, rest);
  if (decided.kind === "number_changed") {
    return fail(terminal, `nothing was ${done}: it would be ${decided.number} now; list them again`);
  }
  const { left } = decided;
  answer(terminal, json, { done: decided.done, left }, `${decided.done} ${done}\n`);
  if (json !== true) for (const line of explainLeft(decided)) terminal.err(`${line}\n`);
  const faults = left.filter(({ why }) => why !== "decided_meanwhile" || selection.ids !== undefined);
  return faults.length === 0 ? EXIT.ok : EXIT.fault;
}

/** Names the number, and has exactly that number decided. Undefined: the operator said no. */
async function confirm(
  { ask }: Terminal,
  verb: string,
  selection: LetterSelection,
  session: Session,
  decide: Decide,
): Promise<(DecisionOptions & { readonly until?: number }) | undefined> {
  const counted = await decide(session, selection, { isDryRun: true });
  if (counted.kind === "number_changed") throw new Error("a number changed that was not named");
  const { done: expected, until } = counted;
  if (expected === 0) return { expected, until };
  const typed = await ask?.(`${verb} ${nameNumber(expected, selection.filter.status)}? Type yes: `);
  return typed?.trim().toLowerCase() === "yes" ? { expected, until } : undefined;
}

/** `1 dead letter`, `312 dispatches in doubt` */
export function nameNumber(count: number, status: LetterStatus): string {
  const [one, many] = status === "dead" ? (["dead letter"] as const) : (["dispatch", "dispatches"] as const);
  return `${countInWords(count, one, many)}${status === "in_doubt" ? " in doubt" : ""}`;
}

/** Resolves positions to event ids. */
async function withIds({ eventLog: { store }, projector }: Session, selection: LetterSelection) {
  if (selection.ids === undefined) return selection;
  const reading = { store, to: projector.position, onProgress: () => {} };
  const ids = selection.ids.map(async (name) => (await findAt(reading, name))?.id ?? name);
  return { ...selection, ids: await Promise.all(ids) };
}

/** One sentence for each reason, and one for each event that is no dead letter. */
function explainLeft({ left }: Decided): readonly string[] {
  const lost = left.filter(({ why }) => why === "decided_meanwhile").length;
  // Those that no channel has come last.
  const inOrder = left.toSorted((one, other) => Number(one.channel === null) - Number(other.channel === null));
  const sentences = new Set(inOrder.flatMap((one) => EXPLANATIONS[one.why]?.(one) ?? []));
  return [...sentences, ...(lost === 0 ? [] : [`another caller decided ${lost} at the same moment`])];
}

const EXPLANATIONS: Readonly<Record<NotAppliedReason, ((one: NotApplied) => string) | undefined>> = {
  suspended: ({ channel }) => `${channel} is suspended and would refuse them: reachlog deliveries resume ${channel}`,
  several_channels: ({ channel }) => `it is in doubt on ${channel}: name one channel with --channel`,
  may_double: ({ channel }) =>
    `an attempt at ${channel} may have arrived, so a retry may arrive twice: ` +
    "add --accept-doubles to send it anyway",
  no_dead_letter: ({ event_id }) => `${printable(event_id)} is no dead letter`,
  not_in_doubt: ({ event_id }) => `${printable(event_id)} is not in doubt`,
  decided_meanwhile: undefined,
};

export const retry: MakeCommand = (terminal) =>
  new Command("retry")
    .summary("send dead letters again, or one dispatch in doubt")
    .description(
      `Makes those dead letters pending again; a running service sends them at once, else
the next start does. It skips those that may have arrived and whose repeat
the network would not recognise.

With --all it names the number first, and asks; without a terminal it needs --yes.

With --in-doubt it resends one dispatch that may have arrived already. It may
arrive twice, so that needs --accept-doubles too.`,
    )
    .argument("[event_ids...]", "the dispatches, as deliveries list names them, or their positions")
    .option("--all", "all dead letters that match")
    .addOption(channelOption())
    .addOption(errorOption())
    .addOption(linkOption())
    .addOption(fromOption())
    .addOption(toOption())
    .option("--in-doubt", "one dispatch in doubt, rather than dead letters")
    .option("--accept-doubles", "send also what may have arrived")
    .option("--yes", "do not ask")
    .option(...JSON_OPTION)
    .examples(
      "reachlog deliveries retry --all --channel messaging --error 5xx",
      "reachlog deliveries retry 43 --in-doubt --accept-doubles",
    )
    .action((ids, { acceptDoubles: acceptsDoubles = false, ...given }) => {
      return decideByCommand(terminal, "retry", ids, given, (session, letters, options) => {
        const { channels } = connectNetworks(session.config);
        const recognisesMs = (name: ChannelName) => channels.find((one) => one.name === name)?.recognisesMs ?? 0;
        const deps = { ...session, recognisesMs, clock: session.logClock.now };
        return retryLetters(deps, letters, { ...options, acceptsDoubles }, COMMAND_METADATA);
      });
    });

export const discard: MakeCommand = (terminal) =>
  new Command("discard")
    .summary("discard dead letters for good")
    .description(
      `Discards dead letters for good; the log keeps the reason. They cannot be retried later.

With --all it names the number first, and asks; without a terminal it needs --yes.`,
    )
    .argument("[event_ids...]", "the dead letters, as deliveries list names them, or their positions")
    .option("--all", "all dead letters that match")
    .requiredOption("--why <text>", `why, in 1 to ${WHY_CHARACTERS_MAX} characters`)
    .addOption(channelOption())
    .addOption(errorOption())
    .addOption(linkOption())
    .addOption(fromOption())
    .addOption(toOption())
    .option("--yes", "do not ask")
    .option(...JSON_OPTION)
    .examples('reachlog deliveries discard --all --channel ads --why "the account is closed"')
    .action((ids, { why: text, ...given }) => {
      const why = requireReason("discard", text);
      return decideByCommand(terminal, "discard", ids, given, (session, letters, options) =>
        discardLetters(session, letters, { ...options, why }, COMMAND_METADATA),
      );
    });

export const settle: MakeCommand = (terminal) =>
  new Command("settle")
    .summary("close dispatches in doubt: they arrived, or are left")
    .description(
      `Closes dispatches in doubt after you looked: with --as arrived they count as
delivered, with --as left they stay unknown. Nothing is sent; the log keeps the reason.

With --all it names the number first, and asks; without a terminal it needs --yes.`,
    )
    .argument("[event_ids...]", "the dispatches, as deliveries list names them, or their positions")
    .addOption(
      new Option("--as <answer>", "what is known of them").choices(["arrived", "left"] as const).makeOptionMandatory(),
    )
    .requiredOption("--why <text>", `why, in 1 to ${WHY_CHARACTERS_MAX} characters`)
    .option("--all", "all dispatches in doubt that match")
    .addOption(channelOption())
    .addOption(errorOption())
    .addOption(linkOption())
    .addOption(fromOption())
    .addOption(toOption())
    .option("--yes", "do not ask")
    .option(...JSON_OPTION)
    .examples('reachlog deliveries settle 43 --as arrived --why "it is in the channel"')
    .action((ids, { as, why: text, ...given }) => {
      const why = requireReason("settle", text);
      return decideByCommand(terminal, "settle", ids, given, (session, letters, options) =>
        settleLetters(session, letters, { ...options, as, why }, COMMAND_METADATA),
      );
    });

/** Throws a ServiceError (usage) for a reason that is empty or too long. */
function requireReason(action: string, text: string): string {
  const why = text.trim();
  if (why.length > 0 && why.length <= WHY_CHARACTERS_MAX) return why;
  throw usageError(`${action} needs --why, in 1 to ${WHY_CHARACTERS_MAX} characters`);
}
