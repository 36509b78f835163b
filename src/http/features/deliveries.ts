import { Type, type Static } from "@sinclair/typebox";
import { channelName, CHANNELS } from "../../../events/channel.ts";
import {
  discardLetters,
  retryLetters,
  WHY_CHARACTERS_MAX,
  type LetterSelection,
  type Decided,
} from "../../delivery/dead-letters.ts";
import { resumeChannel } from "../../delivery/suspension.ts";
import { feature, type AppDeps } from "../deps.ts";
import { jsonBody, type Fields } from "../server/body.ts";
import { operation, reply } from "../server/endpoint.ts";
import { appendedOrNothing, problems, repeatable } from "../server/problem.ts";
import { closed, count, oneOf, orNull, TEXT, text, time } from "./schema.ts";

/** Letters that one request may name: its body hardly holds more, and a caller who wants more wants all. */
const LETTERS_NAMED_MAX = 1_000;

/** Letters listed in an answer that were left as they are. */
const LEFT_LISTED_MAX = 1_000;

const channel = Type.Optional(channelName);

const event_id = Type.String({
  pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
  examples: ["01a1fd59-3b3a-7515-964c-67ff53c10ed1"],
});

/** Those that are named, or all. */
const named = {
  channel,
  event_ids: Type.Array(event_id, {
    minItems: 1,
    maxItems: LETTERS_NAMED_MAX,
    description: "Ids of the events that requested the dispatches.",
  }),
};
const all = {
  channel,
  all: Type.Literal(true),
  until_position: Type.Optional(
    Type.Integer({ minimum: 0, description: "Only dead letters up to this position of the log." }),
  ),
};

type Given = Static<typeof named.event_ids> | undefined;

function toSelection(body: {
  channel?: (typeof CHANNELS)[number];
  event_ids?: Given;
  until_position?: number;
}): LetterSelection {
  const { channel: name, event_ids: ids, until_position: until } = body;
  return { ids, channels: name === undefined ? CHANNELS : [name], ...(until === undefined ? {} : { until }) };
}

const decided = Type.Object({
  done: count,
  left: Type.Array(
    Type.Object({
      event_id: text("01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11"),
      channel: orNull(channelName),
      why: oneOf("no_dead_letter", "suspended", "may_double", "decided_meanwhile"),
    }),
    { maxItems: LEFT_LISTED_MAX },
  ),
  left_count: count,
});

const accept_doubles = Type.Optional(
  Type.Boolean({ description: "Include letters that may have arrived, although a repeat would count twice." }),
);

const why = Type.String({ minLength: 1, maxLength: WHY_CHARACTERS_MAX, pattern: TEXT, examples: ["over"] });

const resumed = Type.Object({ channel: channelName, suspended_since: time });

export function deliveryEndpoints(deps: AppDeps) {
  const { delivery } = deps;
  return feature("deliveries", "/api/deliveries")
    .post(
      "/retry",
      async ({ body, call }) => {
        const retrying = { ...deps, recognisesMs: delivery.recognisesMs };
        const { accept_doubles: acceptsDoubles = false } = body;
        return listed(await repeatable(retryLetters(retrying, toSelection(body), acceptsDoubles, call.metadata)));
      },
      {
        body: jsonBody(
          Type.Union([
            Type.Object({ ...named, accept_doubles }, closed),
            Type.Object({ ...all, accept_doubles }, closed),
          ]),
        ),
        response: { 200: reply("How many were retried, and which were not.", decided) },
        detail: operation("retryDeliveries", "tracking", ["token", "admin"], {
          summary: "Retries dead letters.",
          description:
            "Makes dead letters pending again. Skips those of a suspended channel, and those that may have arrived and whose repeat " +
            "the network would not recognise, unless `accept_doubles` is set. `left` names each skipped letter with the reason.",
          isSlow: true,
          form: {
            path: "/console/deliveries/retry",
            body: (fields) => ({ ...toDecisionBody(fields), accept_doubles: fields["accept_doubles"] !== undefined }),
            notice: saying("retried"),
          },
        }),
      },
    )
    .post(
      "/discard",
      async ({ body, call }) =>
        listed(await repeatable(discardLetters(deps, toSelection(body), body.why.trim(), call.metadata))),
      {
        body: jsonBody(Type.Union([Type.Object({ ...named, why }, closed), Type.Object({ ...all, why }, closed)])),
        response: { 200: reply("How many were discarded, and which were not.", decided) },
        detail: operation("discardDeliveries", "tracking", ["token", "admin"], {
          summary: "Discards dead letters for good.",
          description: "The log keeps the reason. Discarded letters cannot be retried.",
          isSlow: true,
          form: {
            path: "/console/deliveries/discard",
            body: (fields) => ({ ...toDecisionBody(fields), why: fields["why"] ?? "" }),
            notice: saying("discarded"),
          },
        }),
      },
    )
    .post(
      "/resume",
      async ({ body, call }) => {
        const { channel: name } = body;
        const ended = await appendedOrNothing(resumeChannel(deps, name, call.metadata));
        if (ended.kind === "not_suspended") throw problems.notSuspended(name);
        return { channel: name, suspended_since: ended.since };
      },
      {
        body: jsonBody(Type.Object({ channel: channelName }, closed)),
        response: { 200: reply("Resumed.", resumed) },
        detail: operation("resumeDeliveries", "tracking", ["token", "admin"], {
          summary: "Resumes a suspended channel.",
          description: "Sends pending dispatches at once; suspends it again if the network still refuses.",
          problems: ["notSuspended"],
          form: {
            path: "/console/deliveries/resume",
            notice: ({ channel: name }: Static<typeof resumed>) => `${name} is resumed.`,
          },
        }),
      },
    );
}

function listed({ done, left }: Decided) {
  return { done, left: left.slice(0, LEFT_LISTED_MAX), left_count: left.length };
}

/** Of a form: one letter by its event, or all up to the position that its page was of. */
function toDecisionBody({ channel: name, event_id: letter, until_position }: Fields): object {
  const which = letter === undefined ? { all: true, until_position: Number(until_position) } : { event_ids: [letter] };
  return { ...which, ...(name === undefined ? {} : { channel: name }) };
}

const WHY_LEFT: Readonly<Record<Decided["left"][number]["why"], string>> = {
  no_dead_letter: "it is no longer a dead letter",
  suspended: "its channel is suspended: resume it first",
  may_double: "it may have arrived, and would count twice",
  decided_meanwhile: "another caller decided at the same moment",
};

/** `12 dead letters are sent again; 3 are left: its channel is suspended: resume it first.` */
function saying(done: string) {
  return ({ done: number, left, left_count }: ReturnType<typeof listed>): string => {
    const letters = `${number.toLocaleString("en-US")} dead ${number === 1 ? "letter was" : "letters were"} ${done}`;
    if (left_count === 0) return `${letters}.`;
    const reasons = [...new Set(left.map((one) => WHY_LEFT[one.why]))].join("; ");
    return `${letters}, ${left_count.toLocaleString("en-US")} skipped (${reasons}).`;
  };
}
