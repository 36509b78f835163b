import { Type, type Static, type TObject } from "@sinclair/typebox";
import { channelName } from "../../events/channel-and-lane-names.ts";
import type { LetterStatus } from "../../projections/dead-letters.ts";
import { listChannels } from "../../projections/deliveries.ts";
import { findAt } from "../history/find-event.ts";
import { count, named, oneOf, orNull, TEXT, text } from "../platform/common-schemas.ts";
import { countInWords } from "../platform/format-numbers-and-lists.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { operation, refusal, refuse } from "../platform/operation.ts";
import { usageError } from "../platform/service-error.ts";
import {
  describeSkipped,
  discardLetters,
  retryLetters,
  settleLetters,
  WHY_CHARACTERS_MAX,
  type Decided,
  type DecisionOptions,
  type LetterSelection,
  type NumberChanged,
} from "./find-and-decide-dead-letters.ts";
import { nameNumber } from "./deliveries-lag-and-resume.operations.ts";
import {
  channelInput,
  decisionFilterInput,
  filterRefusals,
  readFilter,
  type FilterContext,
} from "./letter-filter-input.ts";
import type { StateContext } from "../log/event-log.ts";
import type { Delivery } from "./wait-for-outcome.ts";

/**
 * Maximum number of events that one decision may name by id. A request's body hardly holds more, and a caller who wants
 * more selects all.
 */
const LETTERS_NAMED_MAX = 1_000;

/** Maximum number of skipped dead letters that a response lists, with the reasons. */
const LEFT_LISTED_MAX = 1_000;

const letterName = Type.String({
  pattern: String.raw`^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[1-9]\d{0,14})$`,
  description: "Id or position of an event",
  examples: ["01a1fd59-3b3a-7515-964c-67ff53c10ed1"],
});

/** Input schema that selects named dead letters, or all that match a filter. */
const selectionInput = {
  event_ids: Type.Optional(
    Type.Array(letterName, {
      minItems: 1,
      maxItems: LETTERS_NAMED_MAX,
      description: "The events that requested the dispatches, by their ids or positions",
    }),
  ),
  all: Type.Optional(Type.Literal(true, { description: "All that match the other members" })),
  ...decisionFilterInput,
  until_position: Type.Optional(
    Type.Integer({ title: "position", minimum: 0, description: "Only what ended up to this position of the log" }),
  ),
  expected: Type.Optional(
    Type.Integer({
      title: "number",
      minimum: 0,
      description: "The number that was counted before; if it has changed, nothing is done",
    }),
  ),
  dry_run: Type.Optional(Type.Boolean({ description: "Only count: change nothing" })),
};

interface Selection extends Static<TObject<typeof selectionInput>> {
  /** Status of the selected dead letters. Only the input of a retry has this member. */
  readonly status?: "in_doubt";
}

const why = Type.String({
  title: "text",
  minLength: 1,
  maxLength: WHY_CHARACTERS_MAX,
  pattern: TEXT,
  description: `Why, in 1 to ${WHY_CHARACTERS_MAX} characters`,
  examples: ["over"],
});

const decidedOutput = {
  done: count,
  left: Type.Array(
    named(
      "SkippedLetter",
      Type.Object({
        event_id: text("01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11"),
        channel: orNull(channelName),
        why: oneOf(
          "no_dead_letter",
          "not_in_doubt",
          "suspended",
          "may_double",
          "several_channels",
          "decided_meanwhile",
        ),
      }),
    ),
    { maxItems: LEFT_LISTED_MAX },
  ),
  left_count: count,
  until_position: Type.Integer({ minimum: 0, description: "Letters up to this position of the log were counted." }),
};

type DecidedJson = Static<TObject<typeof decidedOutput>>;

const decisionRefusals = {
  ...filterRefusals,
  number_changed: refusal(
    "conflict",
    "Nothing was done: {number} would be decided now, not {expected}. List them again.",
    "number",
  ),
};

/** Log on whose dead letters an operator decides. */
interface DecisionContext extends StateContext, FilterContext {}

type Apply = (letters: LetterSelection, options: DecisionOptions) => Promise<Decided | NumberChanged>;

/** Throws a ServiceError (usage) unless the input names dead letters, or says explicitly that all are meant. */
function checkSelection({ event_ids, all, error, link, from, to, until_position, expected }: Selection): void {
  const isAll = all === true;
  if (isAll === (event_ids !== undefined)) throw usageError("give either event_ids or all");
  const [member] = Object.keys(omitUndefined({ error, link, from, to, until_position, expected }));
  if (!isAll && member !== undefined) throw usageError(`${member} needs all`);
}

/**
 * Returns the ids of events, each of which the caller named by its id or its position. A name that fits no event is
 * returned unchanged.
 */
function toIds({ eventLog, projector }: StateContext, names: readonly string[]): Promise<readonly string[]> {
  const reading = { store: eventLog.store, to: projector.position, onProgress: () => {} };
  return Promise.all(names.map(async (one) => (await findAt(reading, one))?.id ?? one));
}

/** Makes an operator's decision about the dead letters that the input selects. Returns the answer or a refusal. */
async function decide(context: DecisionContext, input: Selection, status: LetterStatus, apply: Apply) {
  checkSelection(input);
  const { event_ids, until_position: until, expected, dry_run: isDryRun, channel, error, link, from, to } = input;
  const known = listChannels(context.projector.state("deliveries"));
  const filter = readFilter({ channel, error, link, from, to, status }, context, known);
  if ("refusal" in filter) return filter;
  const ids = event_ids && (await toIds(context, event_ids));
  const selection = { ids, filter, ...omitUndefined({ until }) };
  const decided = await apply(selection, omitUndefined({ isDryRun, expected }));
  if (decided.kind === "number_changed") {
    const { number } = decided;
    return refuse("number_changed", { number, expected: expected ?? 0 }, { number });
  }
  const { done, left, until: until_position } = decided;
  return { done, left: left.slice(0, LEFT_LISTED_MAX), left_count: left.length, until_position };
}

/**
 * Creates what the operations for decisions on dead letters share. `verb` and `done` are words of sentences such as
 * `Retry 3 dead letters?` and `3 dispatches were retried`.
 */
function decision(verb: string, done: string, toStatus: (input: Selection) => LetterStatus) {
  return {
    tag: "tracking",
    access: ["token", "admin"],
    personalRead: false,
    positional: ["event_ids"],
    output: decidedOutput,
    refusals: decisionRefusals,
    isSlow: true,
    confirm(input: Selection): string | undefined {
      const { all, dry_run, expected } = input;
      if (all !== true || dry_run === true || expected === 0) return undefined;
      return `${verb} ${expected === undefined ? "all" : nameNumber(expected, toStatus(input))}?`;
    },
    holdTo<Input extends Selection>({ done: expected, until_position }: DecidedJson, input: Input): Input {
      return { ...input, expected, until_position };
    },
    // The decision counts as complete if it was about all dead letters, and other callers have decided each skipped one
    // meanwhile.
    isPartial: ({ left }: DecidedJson, { all }: Selection): boolean =>
      left.some(({ why: reason }) => reason !== "decided_meanwhile" || all !== true),
    text(answer: DecidedJson, input: Selection): string {
      const [was, were] = input.dry_run === true ? ["would be", "would be"] : ["was", "were"];
      const number = countInWords(answer.done, `dispatch ${was}`, `dispatches ${were}`);
      return `${number} ${done}.${describeLeft(answer)}`;
    },
  } as const;
}

/** Maximum number of sentences about skipped dead letters in one text; a response may list a thousand letters. */
const SENTENCES_MAX = 5;

function describeLeft({ left, left_count }: Omit<DecidedJson, "done" | "until_position">): string {
  // Ids whose event is not a dead letter on any channel come last.
  const inOrder = left.toSorted((one, other) => Number(one.channel === null) - Number(other.channel === null));
  const sentences = [...new Set(inOrder.map(describeSkipped))];
  if (left_count === 0) return "";
  const more = sentences.length > SENTENCES_MAX ? "; and others" : "";
  const skipped = countInWords(left_count, "was skipped", "were skipped");
  return ` ${skipped}: ${sentences.slice(0, SENTENCES_MAX).join("; ")}${more}.`;
}

interface RetryContext extends DecisionContext {
  readonly delivery: Delivery;
}

export const retryDeliveries = operation({
  ...decision("Retry", "retried", ({ status }) => status ?? "dead"),
  name: "deliveries retry",
  id: "retryDeliveries",
  summary: "Retry dead letters, or one dispatch in doubt.",
  description:
    "Makes dead letters pending again; a running service sends them at once. Skips those of a suspended channel, and those that may have arrived and whose repeat " +
    "the network would not recognise, unless `accept_doubles` is set. `left` names each skipped letter with the reason. " +
    "With `dry_run`, `done` is how many would be retried: `expected` and `until_position` of the next request then make " +
    "sure that it retries exactly those. With `status`, retries one dispatch in doubt, which may arrive twice.",
  input: {
    ...selectionInput,
    status: Type.Optional(
      Type.Literal("in_doubt", { title: "name", description: "`in_doubt`: one dispatch in doubt, not dead letters" }),
    ),
    accept_doubles: Type.Optional(
      Type.Boolean({ description: "Include letters that may have arrived, although a repeat would count twice" }),
    ),
  },
  async run(context: RetryContext, { accept_doubles: acceptsDoubles = false, ...input }, caller) {
    const { status = "dead" } = input;
    if (status === "in_doubt" && !(acceptsDoubles && input.event_ids?.length === 1))
      throw usageError("status in_doubt needs one of event_ids, and accept_doubles");
    const { recognisesMs } = context.delivery;
    return await decide(context, input, status, (letters, options) =>
      retryLetters(context, letters, { ...options, acceptsDoubles, recognisesMs }, caller),
    );
  },
  examples: ["--all --channel messaging --error 5xx", "43 --status in_doubt --accept-doubles"],
});

export const discardDeliveries = operation({
  ...decision("Discard", "discarded", () => "dead"),
  name: "deliveries discard",
  id: "discardDeliveries",
  summary: "Discard dead letters for good.",
  description:
    "The log keeps the reason. Discarded letters cannot be retried. `dry_run` and `expected` do the same as for a retry.",
  input: { ...selectionInput, why },
  async run(context: DecisionContext, { why: reason, ...input }, caller) {
    return await decide(context, input, "dead", (letters, options) =>
      discardLetters(context, letters, { ...options, why: reason.trim() }, caller),
    );
  },
  examples: ['--all --channel ads --why "the account is closed"'],
});

export const settleDeliveries = operation({
  ...decision("Settle", "settled", () => "in_doubt"),
  name: "deliveries settle",
  id: "settleDeliveries",
  summary: "Close dispatches in doubt, as arrived or as left.",
  description:
    "For an operator who has checked if they arrived. Nothing is sent, and the log keeps the " +
    "reason. An event in doubt on several channels needs `channel`. `dry_run` and `expected` do the same as for a retry.",
  input: {
    ...selectionInput,
    as: Type.Union([Type.Literal("arrived"), Type.Literal("left")], {
      title: "answer",
      description: "`arrived`: it counts as delivered. `left`: it is neither delivered nor sent again",
    }),
    why,
  },
  async run(context: DecisionContext, { as, why: reason, ...input }, caller) {
    return await decide(context, input, "in_doubt", (letters, options) =>
      settleLetters(context, letters, { ...options, as, why: reason.trim() }, caller),
    );
  },
  examples: ['43 --as arrived --why "it is in the channel"'],
});

const letterNames = (description: string) =>
  Type.Optional(Type.Array(letterName, { minItems: 1, maxItems: LETTERS_NAMED_MAX, description }));

const answered = Type.Object({ done: count, left: decidedOutput.left });

export const decideDeliveries = operation({
  name: "deliveries decide",
  id: "decideDeliveries",
  tag: "tracking",
  access: ["token", "admin"],
  summary: "Answer several dispatches in doubt at once.",
  description:
    "Takes one of three answers for each dispatch in doubt of a channel, and one reason for all: it arrived, it is left as it is, or it is sent again and may arrive twice.",
  personalRead: false,
  input: {
    channel: channelInput("The channel of the dispatches"),
    arrived: letterNames("Dispatches that arrived, by the ids or positions of their events"),
    leave: letterNames("Dispatches that stay unknown, and are not sent again"),
    again: letterNames("Dispatches that are sent again, and may arrive twice"),
    why,
  },
  output: { arrived: answered, leave: answered, again: answered },
  refusals: {
    ...filterRefusals,
    nothing_chosen: refusal("invalid", "Nothing was decided: choose an answer for one dispatch at least."),
  },
  isSlow: true,
  async run(context: RetryContext, { channel, arrived, leave, again, why: reason }, caller) {
    if (arrived === undefined && leave === undefined && again === undefined) return "nothing_chosen";
    const known = listChannels(context.projector.state("deliveries"));
    const filter = readFilter({ channel, status: "in_doubt" }, context, known);
    if ("refusal" in filter) return filter;
    const answer = async (names: readonly string[] | undefined, apply: Apply) => {
      if (names === undefined) return { done: 0, left: [] };
      const decided = await apply({ ids: await toIds(context, names), filter }, {});
      if (decided.kind === "number_changed") throw new Error("a decision without an expected number was refused by it");
      return { done: decided.done, left: [...decided.left] };
    };
    const options = { why: reason.trim() };
    const { recognisesMs } = context.delivery;
    return {
      arrived: await answer(arrived, (letters) =>
        settleLetters(context, letters, { ...options, as: "arrived" }, caller),
      ),
      leave: await answer(leave, (letters) => settleLetters(context, letters, { ...options, as: "left" }, caller)),
      again: await answer(again, (letters) =>
        retryLetters(context, letters, { acceptsDoubles: true, recognisesMs }, caller),
      ),
    };
  },
  isPartial: ({ arrived, leave, again }) => [arrived, leave, again].some(({ left }) => left.length > 0),
  text({ arrived, leave, again }) {
    const left = [...arrived.left, ...leave.left, ...again.left];
    const parts = [`${arrived.done} arrived`, `${leave.done} left`, `${again.done} sent again`];
    const decided = countInWords(arrived.done + leave.done + again.done, "decision");
    return `${decided} recorded: ${parts.join(", ")}.${describeLeft({ left, left_count: left.length })}`;
  },
  examples: ['--channel messaging --arrived 43 --why "seen there"'],
});
