import type { Static } from "@sinclair/typebox";
import { StoreClosed, type Appended, type IdempotencyKey } from "eventstore-lite";
import type { ChannelName } from "../../events/channel.ts";
import { CHANNELS } from "../../events/channel.ts";
import type { Level } from "../../events/delivery.ts";
import { pendingOf, type ChannelState } from "../../projections/deliveries.ts";
import { isBot } from "../delivery/bots.ts";
import type { Delivery, Settlement } from "../delivery/delivery.ts";
import { STREAMS, type EventMetadata, type NewEvent, type EventLog } from "../log/event-log.ts";
import type { Projector } from "../projector/projector.ts";
import { json, type Answer } from "./answer.ts";
import { createWritabilityCheck } from "./writability-check.ts";
import { normalizedUrl } from "./link-url.ts";
import { appendedOrNothing, problems } from "./problem.ts";
import type { messagingBody, notifyBody, trackingBody } from "./schemas.ts";

/** How long a caller of notify, messaging and test waits for the network's answer. */
const DELIVERY_WAIT_MS = 5_000;

export interface ApiDeps {
  readonly eventLog: EventLog;
  readonly projector: Projector;
  readonly delivery: Delivery;
  readonly version: string;
  /** False: clicks of bots are recorded and owe no dispatch. */
  readonly dispatchBots: boolean;
  /** Whether the log works at all; a full disk is found out here. */
  readonly isWritable: () => boolean;
}

/** Undefined: the request came without an `Idempotency-Key`. */
type Key = IdempotencyKey | undefined;

/** Where an event is, and which one. */
interface Recorded {
  readonly first: number;
  readonly ids: readonly string[];
}

/** The general API. Each function is one endpoint; docs/http-api.md has its answers. */
export function createApi(deps: ApiDeps) {
  const { eventLog, projector, delivery } = deps;
  const intake = createWritabilityCheck(eventLog.store);

  /** Appends one fact; a repeated key gives the first event's id and position. */
  const append = (
    newEvent: NewEvent,
    metadata: EventMetadata,
    key: Key,
    stream: string = STREAMS.requests,
  ): Promise<Recorded> => {
    const appended = appendedOrNothing(intake.watch(eventLog.append(stream, [newEvent], metadata, key)));
    return key === undefined ? appended : appended.then((one) => firstOf(eventLog, one));
  };

  const owe = async (newEvent: NewEvent, channel: ChannelName, metadata: EventMetadata, key: Key): Promise<Answer> => {
    if (!delivery.configured.includes(channel)) throw problems.notConfigured(channel);
    const { first, ids } = await append(newEvent, metadata, key);
    return answerOf(ids, await orPending(delivery.settled(channel, first, DELIVERY_WAIT_MS)));
  };

  return {
    async health(): Promise<Answer> {
      const deliveries = projector.state("deliveries");
      const channels = Object.fromEntries(
        CHANNELS.map((name) => [
          name,
          {
            configured: delivery.configured.includes(name),
            pending: pendingOf(deliveries[name]),
            circuit: delivery.circuit(name) ?? null,
            suspended: suspendedOf(deliveries[name]),
          },
        ]),
      );
      const ok = deps.isWritable() && (await intake.isOpen());
      const body = {
        status: ok ? "ok" : "degraded",
        version: deps.version,
        log: { position: projector.position },
        channels,
      };
      return json(ok ? 200 : 503, body);
    },

    notify(body: Static<typeof notifyBody>, metadata: EventMetadata, key: Key): Promise<Answer> {
      const data = { message: body.message, service: body.service ?? "unknown", level: levelOf(body.level ?? "info") };
      return owe({ type: "NotificationRequested", data }, "chat", metadata, key);
    },

    message(body: Static<typeof messagingBody>, metadata: EventMetadata, key: Key): Promise<Answer> {
      return owe({ type: "MessageRequested", data: { text: body.text } }, "messaging", metadata, key);
    },

    track(body: Static<typeof trackingBody>, metadata: EventMetadata, key: Key): Promise<Answer> {
      const bot = isBot(body.user_agent);
      const channels = bot && !deps.dispatchBots ? [] : delivery.configured;
      const normalized_url = normalizedUrl(body.original_url);
      const differs = normalized_url !== undefined && normalized_url !== body.original_url;
      const data = { ...body, ...(differs ? { normalized_url } : {}), bot, channels: [...channels] };
      const newEvent: NewEvent = { type: "LinkClicked", data };
      const stream = STREAMS.link(body.domain, body.short_code);
      return append(newEvent, metadata, key, stream).then(({ ids }) => json(202, { id: ids[0] }));
    },

    async test(metadata: EventMetadata, key: Key): Promise<Answer> {
      const channels = [...delivery.configured];
      const { first } = await append({ type: "ChannelTestRequested", data: { channels } }, metadata, key);
      const results = await Promise.all(
        CHANNELS.map(async (name) => {
          if (!channels.includes(name)) return [name, { ok: false, status: "not_configured", latency_ms: null }];
          return [name, testResult(await orPending(delivery.settled(name, first, DELIVERY_WAIT_MS + 1_000)))];
        }),
      );
      return json(200, { results: Object.fromEntries(results) });
    },
  };
}

/** What was appended under a key, now or by an earlier request. */
async function firstOf(eventLog: EventLog, appended: Recorded & Pick<Appended, "repeated">): Promise<Recorded> {
  const { first, repeated } = appended;
  if (!repeated) return appended;
  for await (const event of eventLog.store.read({ from: first, to: first })) return { first, ids: [event.id] };
  throw new Error(`the log has no event at position ${first}`);
}

/** What is recorded stays so when the log ends while its outcome is waited for: the next start goes on with it. */
async function orPending(settled: Promise<Settlement | undefined>): Promise<Settlement | undefined> {
  try {
    return await settled;
  } catch (fault) {
    if (fault instanceof StoreClosed) return undefined;
    throw fault;
  }
}

function answerOf(ids: readonly string[], settlement: Settlement | undefined): Answer {
  const [id] = ids;
  if (settlement === undefined) return json(202, { id, status: "pending" });
  switch (settlement.status) {
    case "delivered":
      return json(200, { id, status: "delivered" });
    case "in_doubt":
      throw problems.deliveryInDoubt(settlement.detail);
    default:
      throw problems.refusedByNetwork(settlement.detail);
  }
}

function testResult(settlement: Settlement | undefined) {
  if (settlement === undefined) return { ok: false, status: "in_doubt", latency_ms: null, detail: "no answer in time" };
  if (settlement.status === "delivered") return { ok: true, status: "delivered", latency_ms: settlement.latencyMs };
  if (settlement.status === "skipped")
    return { ok: false, status: "failed", latency_ms: null, detail: settlement.detail };
  return { ok: false, status: settlement.status, latency_ms: settlement.latencyMs ?? null, detail: settlement.detail };
}

const SYNONYMS: Readonly<Record<string, Level>> = { warn: "warning", err: "error", fatal: "critical" };

function levelOf(given: string): Level {
  const level = given.toLowerCase();
  return SYNONYMS[level] ?? (level as Level);
}

/** Since when and why the network refuses the channel; null while it does not. */
function suspendedOf({ suspended }: ChannelState) {
  return suspended === null ? null : { since: suspended.since, detail: suspended.detail };
}
