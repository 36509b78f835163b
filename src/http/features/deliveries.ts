import { Type, type Static } from "@sinclair/typebox";
import { channelName } from "../../../events/channel.ts";
import {
  discardLetters,
  findLetters,
  retryLetters,
  settleLetters,
  WHY_CHARACTERS_MAX,
  type Decided,
  type DecisionOptions,
  type LetterSelection,
  type NumberChanged,
} from "../../delivery/dead-letters.ts";
import {
  ERROR,
  FILTER_NAMES,
  FILTER_SENTENCES,
  parseDispatchFilter,
  STATUSES,
  type DispatchFilter,
  type FilterTexts,
} from "../../delivery/dead-letter-filter.ts";
import {
  DISPATCHES_LISTED,
  formatCursor,
  parseCursor,
  readDispatchPage,
  toDispatchJson,
  type ListCursor,
} from "../../delivery/list-dispatches.ts";
import type { LetterStatus } from "../../../projections/dead-letters.ts";
import { LINK_CHARACTERS_MAX } from "../../../projections/sent-links.ts";
import { countInWords, grouped } from "../../platform/counts-and-lists.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { resumeChannel } from "../../delivery/suspension.ts";
import { feature, type AppDeps } from "../deps.ts";
import { jsonBody, objectBody, type Fields } from "../server/body.ts";
import { route, reply } from "../server/endpoint.ts";
import { appendedOrNothing, problems, repeatable } from "../server/problem.ts";
import { closedObject, count, oneOf, orNull, TEXT, text, time } from "../../platform/common-schemas.ts";
import { parseGiven } from "../server/query.ts";

/** Letters that one request may name: its body hardly holds more, and a caller who wants more wants all. */
const LETTERS_NAMED_MAX = 1_000;

/** Letters listed in an answer that were left as they are. */
const LEFT_LISTED_MAX = 1_000;

const channel = Type.Optional(channelName);

const event_id = Type.String({
  pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
  examples: ["01a1fd59-3b3a-7515-964c-67ff53c10ed1"],
});

const dry_run = Type.Optional(Type.Boolean({ description: "Only count: change nothing." }));

const named = {
  channel,
  event_ids: Type.Array(event_id, {
    minItems: 1,
    maxItems: LETTERS_NAMED_MAX,
    description: "Ids of the events that requested the dispatches.",
  }),
  dry_run,
};

/** A day or a time with its offset is shorter. */
const MOMENT_CHARACTERS_MAX = 40;

const moment = (description: string, ...examples: string[]) =>
  Type.Optional(Type.String({ maxLength: MOMENT_CHARACTERS_MAX, description, examples }));

/** All that match the filter. */
const all = {
  channel,
  all: Type.Literal(true, { description: "All that match the other members." }),
  error: Type.Optional(Type.String({ pattern: ERROR, description: FILTER_SENTENCES.error, examples: ["5xx"] })),
  link: Type.Optional(
    Type.String({
      maxLength: LINK_CHARACTERS_MAX,
      description: FILTER_SENTENCES.link,
      examples: ["go.example/welcome", "go.example"],
    }),
  ),
  from: moment(FILTER_SENTENCES.from, "2026-11-20"),
  to: moment(FILTER_SENTENCES.to, "2026-11-20T10:15:00Z"),
  until_position: Type.Optional(
    Type.Integer({ minimum: 0, description: "Only dead letters up to this position of the log." }),
  ),
  expected: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: "The number that was counted. If it is another one now, nothing is done.",
    }),
  ),
  dry_run,
};

const inDoubt = {
  channel,
  status: Type.Literal("in_doubt"),
  event_ids: Type.Array(event_id, { minItems: 1, maxItems: 1, description: "One at a time." }),
  accept_doubles: Type.Literal(true, { description: "It may have arrived, and may arrive twice." }),
  dry_run,
};

interface DecisionBody extends FilterTexts {
  readonly event_ids?: readonly string[];
  readonly until_position?: number;
  readonly expected?: number;
  readonly dry_run?: boolean;
}

/** Throws the problem 422. */
function toSelection(body: DecisionBody, deps: AppDeps): LetterSelection {
  const { event_ids: ids, until_position: until } = body;
  return { ids, filter: parseFilter(body, deps), ...omitUndefined({ until }) };
}

function toOptions({ dry_run: isDryRun, expected }: DecisionBody): DecisionOptions {
  return omitUndefined({ isDryRun, expected });
}

/** Throws the problem 422. */
function parseFilter(texts: FilterTexts, { config }: AppDeps): DispatchFilter {
  return parseGiven(() => parseDispatchFilter(texts, config.outreach.timezone), problems.unusableFilter);
}

const decided = Type.Object({
  done: count,
  left: Type.Array(
    Type.Object({
      event_id: text("01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11"),
      channel: orNull(channelName),
      why: oneOf("no_dead_letter", "not_in_doubt", "suspended", "may_double", "several_channels", "decided_meanwhile"),
    }),
    { maxItems: LEFT_LISTED_MAX },
  ),
  left_count: count,
  until_position: Type.Integer({ minimum: 0, description: "Letters up to this position of the log were counted." }),
});

const dispatch = Type.Object({
  event_id: text("01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11"),
  channel: channelName,
  status: oneOf(...STATUSES),
  link: orNull(text("go.example/welcome")),
  attempts: count,
  refused: orNull(Type.Boolean({ description: "False: all attempts failed. Null: in doubt." })),
  http_status: orNull(Type.Integer({ examples: [503] })),
  detail: text("no answer in time"),
  doubtful_since: orNull(time),
  ended_at: time,
  source: Type.Integer({ description: "Position of the event that requested it." }),
  position: Type.Integer({ description: "Position of the event that gave it up, or left it in doubt." }),
});

const listing = Type.Object({
  count: Type.Integer({ minimum: 0, description: "How many match, on all pages." }),
  until_position: Type.Integer({ minimum: 0, description: "Dispatches up to this position of the log were counted." }),
  dispatches: Type.Array(dispatch, { maxItems: DISPATCHES_LISTED }),
  next: orNull(text("86-12")),
});

const accept_doubles = Type.Optional(
  Type.Boolean({ description: "Include letters that may have arrived, although a repeat would count twice." }),
);

const why = Type.String({ minLength: 1, maxLength: WHY_CHARACTERS_MAX, pattern: TEXT, examples: ["over"] });

const answer = Type.Union([Type.Literal("arrived"), Type.Literal("left")], {
  description: "`arrived`: it counts as delivered. `left`: it is neither delivered nor sent again.",
});

const resumed = Type.Object({ channel: channelName, suspended_since: time });

export function deliveryEndpoints(deps: AppDeps) {
  const { delivery, eventLog, projector } = deps;
  return feature("deliveries", "/api/deliveries")
    .get(
      "",
      async ({ request }) => {
        const { searchParams } = new URL(request.url);
        const texts = FILTER_NAMES.map((name) => [name, searchParams.get(name)?.trim() || undefined]);
        const filter = parseFilter(Object.fromEntries(texts), deps);
        const after = readCursor(searchParams);
        const { position } = projector;
        const at = { deliveries: projector.state("deliveries"), position };
        const letters = await findLetters(eventLog.store, at, filter);
        const { dispatches, next } = await readDispatchPage(eventLog.store, letters, after);
        return {
          count: letters.length,
          until_position: position,
          dispatches: dispatches.map(toDispatchJson),
          next: next === undefined ? null : formatCursor(next),
        };
      },
      route("listDeliveries", "tracking", ["session", "read"], {
        response: { 200: reply("One page, the newest first.", listing) },
        personalRead: false,
        summary: "Lists dead letters, or dispatches in doubt.",
        description: `At most ${DISPATCHES_LISTED} a page. Those that were retried or discarded are not listed. Needs a token or a console session once a token is configured.`,
        query: {
          ...FILTER_SENTENCES,
          status: "`dead` (default) or `in_doubt`.",
          after: "`next` of the page before.",
        },
        problems: ["invalid", "unusableFilter"],
        isSlow: true,
      }),
    )
    .post(
      "/retry",
      async ({ body, call }) => {
        const retrying = { ...deps, recognisesMs: delivery.recognisesMs };
        const { accept_doubles: acceptsDoubles = false } = body;
        const selection = toSelection(body, deps);
        const options = { ...toOptions(body), acceptsDoubles };
        return decidedJson(body, await repeatable(retryLetters(retrying, selection, options, call.metadata)));
      },
      route("retryDeliveries", "tracking", ["token", "admin"], {
        body: jsonBody(
          Type.Union([
            closedObject({ ...named, accept_doubles }),
            closedObject({ ...all, accept_doubles }),
            closedObject(inDoubt),
          ]),
        ),
        response: { 200: reply("How many were retried, and which were not.", decided) },
        summary: "Retries dead letters, or one dispatch in doubt.",
        description:
          "Makes dead letters pending again. Skips those of a suspended channel, and those that may have arrived and whose repeat " +
          "the network would not recognise, unless `accept_doubles` is set. `left` names each skipped letter with the reason. " +
          "With `dry_run`, `done` is how many would be retried: `expected` and `until_position` of the next request then make " +
          "sure that it retries exactly those. With `status`, retries one dispatch in doubt, which may arrive twice.",
        problems: ["numberChanged", "unusableFilter"],
        isSlow: true,
        form: {
          path: "/console/deliveries/retry",
          body: (fields) => ({ ...toDecisionBody(fields), accept_doubles: fields["accept_doubles"] !== undefined }),
          notice: saying("retried"),
        },
      }),
    )
    .post(
      "/discard",
      async ({ body, call }) => {
        const selection = toSelection(body, deps);
        const options = { ...toOptions(body), why: body.why.trim() };
        return decidedJson(body, await repeatable(discardLetters(deps, selection, options, call.metadata)));
      },
      route("discardDeliveries", "tracking", ["token", "admin"], {
        body: jsonBody(Type.Union([closedObject({ ...named, why }), closedObject({ ...all, why })])),
        response: { 200: reply("How many were discarded, and which were not.", decided) },
        summary: "Discards dead letters for good.",
        description:
          "The log keeps the reason. Discarded letters cannot be retried. `dry_run` and `expected` do the same as for a retry.",
        problems: ["numberChanged", "unusableFilter"],
        isSlow: true,
        form: {
          path: "/console/deliveries/discard",
          body: (fields) => ({ ...toDecisionBody(fields), why: fields["why"] ?? "" }),
          notice: saying("discarded"),
        },
      }),
    )
    .post(
      "/settle",
      async ({ body, call }) => {
        const selection = toSelection({ ...body, status: "in_doubt" }, deps);
        const options = { ...toOptions(body), as: body.as, why: body.why.trim() };
        return decidedJson(body, await repeatable(settleLetters(deps, selection, options, call.metadata)));
      },
      route("settleDeliveries", "tracking", ["token", "admin"], {
        body: jsonBody(
          Type.Union([closedObject({ ...named, as: answer, why }), closedObject({ ...all, as: answer, why })]),
        ),
        response: { 200: reply("How many were settled, and which were not.", decided) },
        summary: "Closes dispatches in doubt.",
        description:
          "For an operator who looked: they arrived, or they are left as they are. Nothing is sent, and the log keeps the " +
          "reason. One that is in doubt on several channels needs `channel`. `dry_run` and `expected` do the same as for a retry.",
        problems: ["numberChanged", "unusableFilter"],
        isSlow: true,
        form: {
          path: "/console/deliveries/settle",
          body: (fields) => ({
            ...toDecisionBody(fields, "in_doubt"),
            as: fields["as"] ?? "",
            why: fields["why"] ?? "",
          }),
          notice: saying("settled", "in_doubt"),
        },
      }),
    )
    .post(
      "/resume",
      async ({ body, call }) => {
        const { channel: name } = body;
        const ended = await appendedOrNothing(resumeChannel(deps, name, call.metadata));
        if (ended.kind === "not_suspended") throw problems.notSuspended(name);
        return { channel: name, suspended_since: ended.since };
      },
      route("resumeDeliveries", "tracking", ["token", "admin"], {
        body: objectBody({ channel: channelName }),
        response: { 200: reply("Resumed.", resumed) },
        summary: "Resumes a suspended channel.",
        description: "Sends pending dispatches at once; suspends it again if the network still refuses.",
        problems: ["notSuspended"],
        form: {
          path: "/console/deliveries/resume",
          notice: ({ channel: name }: Static<typeof resumed>) => `${name} is resumed.`,
        },
      }),
    );
}

/** Throws the problem 409. */
function decidedJson({ expected = 0 }: DecisionBody, decision: Decided | NumberChanged) {
  if (decision.kind === "number_changed") throw problems.numberChanged(expected, decision.number);
  const { done, left, until: until_position } = decision;
  return { done, left: left.slice(0, LEFT_LISTED_MAX), left_count: left.length, until_position };
}

/** Throws the problem 422. */
function readCursor(query: URLSearchParams): ListCursor | undefined {
  const after = query.get("after");
  const cursor = after === null ? undefined : parseCursor(after);
  if (after === null || cursor !== undefined) return cursor;
  throw problems.invalid([{ path: "?after", message: "Expected the `next` of a page" }]);
}

/** Of a form: one letter by its event, or all that match up to the position that its page was of. */
function toDecisionBody(
  { event_id: letter, until_position, expected, ...fields }: Fields,
  implied?: LetterStatus,
): object {
  const names = FILTER_NAMES.filter((name) => implied === undefined || name !== "status");
  const filter = Object.fromEntries(names.flatMap((name) => (fields[name] ? [[name, fields[name]]] : [])));
  if (letter !== undefined) return { ...filter, event_ids: [letter] };
  const counted = { until_position: Number(until_position), ...(expected && { expected: Number(expected) }) };
  return { ...filter, all: true, ...counted };
}

const WHY_LEFT: Readonly<Record<Decided["left"][number]["why"], string>> = {
  no_dead_letter: "it is no longer a dead letter",
  not_in_doubt: "it is no longer in doubt",
  suspended: "its channel is suspended: resume it first",
  may_double: "it may have arrived, and would count twice",
  several_channels: "it is in doubt on several channels: name one",
  decided_meanwhile: "another caller decided at the same moment",
};

/** `12 dead letters are sent again; 3 are left: its channel is suspended: resume it first.` */
function saying(done: string, implied?: LetterStatus) {
  return ({ done: number, left, left_count }: ReturnType<typeof decidedJson>, { status = implied }: Fields): string => {
    const [one, many] = status === "in_doubt" ? ["dispatch", "dispatches"] : ["dead letter", "dead letters"];
    const letters = `${countInWords(number, `${one} was`, `${many} were`)} ${done}`;
    if (left_count === 0) return `${letters}.`;
    const reasons = [...new Set(left.map((one) => WHY_LEFT[one.why]))].join("; ");
    return `${letters}, ${grouped(left_count)} skipped (${reasons}).`;
  };
}
