import { Type, type Static } from "@sinclair/typebox";
import { channelName, CHANNELS, sortChannels, type ChannelName } from "../../../events/channel-and-lane-names.ts";
import { level, type Level } from "../../../events/delivery.ts";
import type { Settlement } from "../../delivery/wait-for-outcome.ts";
import { ATTEMPT_TIMEOUT_MS } from "../../delivery/attempt-dispatches.ts";
import { classifyError } from "../../log/classify-store-error.ts";
import type { NewEvent } from "../../log/event-log.ts";
import { formatDuration } from "../../platform/format-numbers-and-lists.ts";
import { status } from "elysia";
import { feature, type HttpContext } from "../http-context.ts";
import { objectBody } from "../server/body.ts";
import { route, reply } from "../server/endpoint.ts";
import { problems } from "../server/problem.ts";
import type { AppendedBy } from "../server/event-intake.ts";
import { TEXT, id, named, oneOf, orNull, text } from "../../platform/common-schemas.ts";

/** Time in ms that the caller of a direct send waits for the network's answer. */
const DELIVERY_WAIT_MS = 5_000;

const WAITS = `Waits ${formatDuration(DELIVERY_WAIT_MS / 1_000)} for the network's answer. If it is not delivered by then, retries continue in the background.`;

const sent = {
  200: reply("Delivered.", Type.Object({ id, status: Type.Literal("delivered") })),
  202: reply("Not delivered yet; retries continue.", Type.Object({ id, status: Type.Literal("pending") })),
};

const SEND_PROBLEMS = ["notConfigured", "refusedByNetwork", "deliveryInDoubt"] as const;

const SYNONYMS: Readonly<Record<string, Level>> = { warn: "warning", err: "error", fatal: "critical" };

/** Accepted values of a notification's level: the levels themselves, and words with the same meaning. */
const LEVELS = level.anyOf.flatMap(({ const: name }) => [
  name,
  ...Object.keys(SYNONYMS).filter((word) => SYNONYMS[word] === name),
]);

/** Returns a regular expression that matches a word in any case; patterns of JSON Schema have no flag for that. */
const inAnyCase = (word: string): string => word.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);

const notification = objectBody({
  message: Type.String({ minLength: 1, maxLength: 4000, pattern: TEXT, examples: ["disk full"] }),
  service: Type.Optional(Type.String({ minLength: 1, maxLength: 100, examples: ["web-1"] })),
  level: Type.Optional(Type.String({ pattern: `^(${LEVELS.map(inAnyCase).join("|")})$`, examples: LEVELS })),
});

const message = objectBody({
  text: Type.String({ minLength: 1, maxLength: 4096, pattern: TEXT, examples: ["hello"] }),
});

const result = named(
  "TestResult",
  Type.Object({
    ok: Type.Boolean(),
    status: oneOf("delivered", "failed", "in_doubt", "not_configured"),
    latency_ms: orNull(Type.Number({ minimum: 0 })),
    detail: Type.Optional(text("channel_not_found")),
  }),
);
export type TestResult = Static<typeof result>;

/** Schema of the results by channel. The channel of a named webhook is `webhook-NAME`. */
const results = Type.Object(Object.fromEntries(CHANNELS.map((name) => [name, Type.Optional(result)])), {
  additionalProperties: result,
});

export function directSendEndpoints(context: HttpContext) {
  const { delivery, eventIntake, idempotency } = context;
  return feature("direct-sends", "/api")
    .post(
      "/notify",
      ({ body, call }) =>
        idempotency.once(call, body, (key) => {
          const { message: text, service = "unknown", level: given = "info" } = body;
          const word = given.toLowerCase();
          const data = { message: text, service, level: SYNONYMS[word] ?? (word as Level) };
          return send(context, "chat", { type: "NotificationRequested", data }, { metadata: call.metadata, key });
        }),
      route("notify", "tracking", ["strict", "notify"], {
        body: notification,
        response: sent,
        summary: "Sends a notification to the team chat.",
        description: WAITS,
        requestHeaders: ["Idempotency-Key"],
        problems: SEND_PROBLEMS,
      }),
    )
    .post(
      "/messaging",
      ({ body, call }) =>
        idempotency.once(call, body, (key) => {
          const newEvent: NewEvent = { type: "MessageRequested", data: { text: body.text } };
          return send(context, "messaging", newEvent, { metadata: call.metadata, key });
        }),
      route("sendMessage", "tracking", ["token", "notify"], {
        body: message,
        response: sent,
        summary: "Sends a message to the messaging service.",
        description: WAITS,
        requestHeaders: ["Idempotency-Key"],
        problems: SEND_PROBLEMS,
      }),
    )
    .post(
      "/tracking/test",
      ({ body, call }) =>
        idempotency.once(call, body, async (key) => {
          const asked =
            body.channel === undefined ? sortChannels([...CHANNELS, ...delivery.configured]) : [body.channel];
          const channels = asked.filter((name) => delivery.configured.includes(name));
          const newEvent: NewEvent = { type: "ChannelTestRequested", data: { channels } };
          const { first } = await eventIntake.append([newEvent], { metadata: call.metadata, key });
          const tested = asked.map(async (name) => {
            if (!channels.includes(name)) return [name, NOT_CONFIGURED] as const;
            const settled = delivery.settled(name, first, ATTEMPT_TIMEOUT_MS + 1_000);
            return [name, testResult(await orPending(settled))] as const;
          });
          return { results: Object.fromEntries(await Promise.all(tested)) };
        }),
      route("testChannels", "tracking", ["token", "admin"], {
        body: objectBody({ channel: Type.Optional(channelName) }),
        response: { 200: reply("The result of each channel.", Type.Object({ results })) },
        summary: "Sends a test message to each channel, or to one.",
        description: `One attempt each, for ${formatDuration(ATTEMPT_TIMEOUT_MS / 1_000)}.`,
        requestHeaders: ["Idempotency-Key"],
        form: { path: "/console/channels/test", notice: saysTested },
      }),
    );
}

async function send({ delivery, eventIntake }: HttpContext, channel: ChannelName, newEvent: NewEvent, by: AppendedBy) {
  if (!delivery.configured.includes(channel)) throw problems.notConfigured(channel);
  const { first, ids } = await eventIntake.append([newEvent], by);
  const settlement = await orPending(delivery.settled(channel, first, DELIVERY_WAIT_MS));
  if (settlement === undefined) return status(202, { id: ids[0]!, status: "pending" as const });
  switch (settlement.status) {
    case "delivered":
      return status(200, { id: ids[0]!, status: "delivered" as const });
    case "in_doubt":
      throw problems.deliveryInDoubt(settlement.detail);
    default:
      throw problems.refusedByNetwork(settlement.detail);
  }
}

const NOT_CONFIGURED: TestResult = { ok: false, status: "not_configured", latency_ms: null };

function saysTested({ results }: { readonly results: Readonly<Record<string, TestResult>> }) {
  const tested = Object.entries(results)
    .map(([name, one]) => `${name}: ${formatResult(one)}`)
    .join("; ");
  const isFault = Object.values(results).some(({ ok, status }) => !ok && status !== "not_configured");
  return { text: `${tested}.`, isFault };
}

/** Maximum number of characters of a network's answer in the console's notice. */
const DETAIL_SHOWN = 150;

function formatResult({ status, latency_ms, detail }: TestResult): string {
  const words = status.replaceAll("_", " ");
  if (detail !== undefined) return `${words} (${detail.slice(0, DETAIL_SHOWN)})`;
  return latency_ms === null ? words : `${words} in ${Math.round(latency_ms)} ms`;
}

function testResult(settlement: Settlement | undefined): TestResult {
  if (settlement === undefined) return { ok: false, status: "in_doubt", latency_ms: null, detail: "no answer in time" };
  if (settlement.status === "delivered") return { ok: true, status: "delivered", latency_ms: settlement.latencyMs };
  const { status, latencyMs = null, detail } = settlement;
  return { ok: false, status: status === "skipped" ? "failed" : status, latency_ms: latencyMs, detail };
}

/**
 * Returns the result of a direct send. Undefined if the log closes during the wait; the event is recorded, and the next
 * start of the service resumes its dispatch.
 */
async function orPending(settled: Promise<Settlement | undefined>): Promise<Settlement | undefined> {
  try {
    return await settled;
  } catch (fault) {
    if (classifyError(fault) === "closed") return undefined;
    throw fault;
  }
}
