import { Type, type Static } from "@sinclair/typebox";
import { CHANNELS, type ChannelName } from "../../../events/channel.ts";
import { level, type Level } from "../../../events/delivery.ts";
import type { Delivery, Settlement } from "../../delivery/delivery.ts";
import { kindOf } from "../../log/error-kind.ts";
import type { NewEvent } from "../../log/event-log.ts";
import { json, type Answer } from "../server/answer.ts";
import { jsonBody } from "../server/body.ts";
import { formOf } from "./console-form.ts";
import { post } from "../server/endpoint.ts";
import { problems } from "../server/problem.ts";
import type { AppendedBy, RequestLog } from "../server/request-log.ts";
import { TEXT, closed, id, oneOf, orNull, perChannel, text } from "./schema.ts";

/** How long a caller waits for the network's answer. */
const DELIVERY_WAIT_MS = 5_000;

export interface DirectSendDeps {
  readonly delivery: Delivery;
  readonly requestLog: RequestLog;
}

const sent = {
  200: { says: "The network took it.", schema: Type.Object({ id, status: Type.Literal("delivered") }) },
  202: { says: "It is being tried again.", schema: Type.Object({ id, status: Type.Literal("pending") }) },
};

const SEND_PROBLEMS = ["notConfigured", "refusedByNetwork", "deliveryInDoubt"] as const;

const SYNONYMS: Readonly<Record<string, Level>> = { warn: "warning", err: "error", fatal: "critical" };

/** Each level, and behind it the words that are taken for it. */
const LEVELS = level.anyOf.flatMap(({ const: name }) => [
  name,
  ...Object.keys(SYNONYMS).filter((word) => SYNONYMS[word] === name),
]);

/** A pattern for a word in any case: patterns of JSON Schema have no flags. */
const inAnyCase = (word: string): string => word.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);

const notification = Type.Object(
  {
    message: Type.String({ minLength: 1, maxLength: 4000, pattern: TEXT, examples: ["disk full"] }),
    service: Type.Optional(Type.String({ minLength: 1, maxLength: 100, examples: ["web-1"] })),
    level: Type.Optional(Type.String({ pattern: `^(${LEVELS.map(inAnyCase).join("|")})$`, examples: LEVELS })),
  },
  closed,
);

export const notify = post({
  id: "notify",
  tag: "tracking",
  summary: "Sends a notification to the team chat.",
  description:
    "Waits five seconds for the network's answer. What is not delivered by then is tried again in the background.",
  takes: ["Idempotency-Key"],
  body: jsonBody(notification),
  answers: sent,
  problems: SEND_PROBLEMS,
  handle(deps: DirectSendDeps, asked) {
    const { message: text, service = "unknown", level: given = "info" } = asked.body;
    const data = { message: text, service, level: levelOf(given) };
    return send(deps, "chat", { type: "NotificationRequested", data }, asked);
  },
});

function levelOf(given: string): Level {
  const word = given.toLowerCase();
  return SYNONYMS[word] ?? (word as Level);
}

const message = Type.Object(
  { text: Type.String({ minLength: 1, maxLength: 4096, pattern: TEXT, examples: ["hello"] }) },
  closed,
);

export const sendMessage = post({
  id: "sendMessage",
  tag: "tracking",
  summary: "Sends a message to the messaging service.",
  description:
    "Waits five seconds for the network's answer. What is not delivered by then is tried again in the background.",
  takes: ["Idempotency-Key"],
  body: jsonBody(message),
  answers: sent,
  problems: SEND_PROBLEMS,
  handle: (deps: DirectSendDeps, asked) =>
    send(deps, "messaging", { type: "MessageRequested", data: { text: asked.body.text } }, asked),
});

async function send(
  { delivery, requestLog }: DirectSendDeps,
  channel: ChannelName,
  newEvent: NewEvent,
  by: AppendedBy,
): Promise<Answer> {
  if (!delivery.configured.includes(channel)) throw problems.notConfigured(channel);
  const { first, ids } = await requestLog.append(newEvent, by);
  const settlement = await orPending(delivery.settled(channel, first, DELIVERY_WAIT_MS));
  if (settlement === undefined) return json(202, { id: ids[0], status: "pending" });
  switch (settlement.status) {
    case "delivered":
      return json(200, { id: ids[0], status: "delivered" });
    case "in_doubt":
      throw problems.deliveryInDoubt(settlement.detail);
    default:
      throw problems.refusedByNetwork(settlement.detail);
  }
}

const result = Type.Object({
  ok: Type.Boolean(),
  status: oneOf("delivered", "failed", "in_doubt", "not_configured"),
  latency_ms: orNull(Type.Number({ minimum: 0 })),
  detail: Type.Optional(text("channel_not_found")),
});
type TestResult = Static<typeof result>;

const results = perChannel(result);

export const testChannels = post({
  id: "testChannels",
  tag: "tracking",
  summary: "Sends a test message to each channel.",
  description: "One attempt each, for five seconds.",
  takes: ["Idempotency-Key"],
  body: jsonBody(Type.Object({}, closed)),
  answers: { 200: { says: "How each went.", schema: Type.Object({ results }) } },
  problems: [],
  async handle({ delivery, requestLog }: DirectSendDeps, by) {
    const channels = [...delivery.configured];
    const { first } = await requestLog.append({ type: "ChannelTestRequested", data: { channels } }, by);
    const tested = CHANNELS.map(async (name) => {
      if (!channels.includes(name)) return [name, { ok: false, status: "not_configured", latency_ms: null }];
      return [name, testResult(await orPending(delivery.settled(name, first, DELIVERY_WAIT_MS + 1_000)))];
    });
    return json(200, { results: Object.fromEntries(await Promise.all(tested)) });
  },
});

type TestAnswer = { readonly results: Readonly<Record<ChannelName, TestResult>> };

export const testChannelsByForm = formOf(testChannels, {
  body: () => ({}),
  says: ({ results: tested }: TestAnswer) => {
    const text = CHANNELS.map((name) => `${name}: ${wordsOf(tested[name])}`).join("; ");
    const isFault = CHANNELS.some((name) => !tested[name].ok && tested[name].status !== "not_configured");
    return { text: `${text}.`, isFault };
  },
});

/** Characters of what a network answered that a notice shows. */
const DETAIL_SHOWN = 150;

function wordsOf({ status, latency_ms, detail }: TestResult): string {
  const words = status.replaceAll("_", " ");
  if (detail !== undefined) return `${words} (${detail.slice(0, DETAIL_SHOWN)})`;
  return latency_ms === null ? words : `${words} in ${Math.round(latency_ms)} ms`;
}

function testResult(settlement: Settlement | undefined) {
  if (settlement === undefined) return { ok: false, status: "in_doubt", latency_ms: null, detail: "no answer in time" };
  if (settlement.status === "delivered") return { ok: true, status: "delivered", latency_ms: settlement.latencyMs };
  if (settlement.status === "skipped")
    return { ok: false, status: "failed", latency_ms: null, detail: settlement.detail };
  return { ok: false, status: settlement.status, latency_ms: settlement.latencyMs ?? null, detail: settlement.detail };
}

/** What is recorded stays so when the log ends while its outcome is waited for: the next start goes on with it. */
async function orPending(settled: Promise<Settlement | undefined>): Promise<Settlement | undefined> {
  try {
    return await settled;
  } catch (fault) {
    if (kindOf(fault) === "closed") return undefined;
    throw fault;
  }
}
