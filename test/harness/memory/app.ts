import { createHash } from "node:crypto";
import { tmpdir } from "node:os";
import { expect } from "bun:test";
import type { EventStore } from "eventstore-lite";
import { CLICK_CHANNELS, type ChannelName } from "../../../events/channel.ts";
import type { Event } from "../../../events/catalog.ts";
import { listChannels } from "../../../projections/deliveries.ts";
import type { Circuit } from "../../../src/delivery/rate-limiter.ts";
import type { Delivery, Settlement } from "../../../src/delivery/settlement.ts";
import { loadConfig } from "../../../src/config/config.ts";
import type { AccountParts, AppDeps } from "../../../src/http/deps.ts";
import { createConsole } from "../../../src/console/console.ts";
import { createApp, type App } from "../../../src/http/app.ts";
import { createAuthentication } from "../../../src/http/access/bearer-tokens.ts";
import { createClientAddress } from "../../../src/http/access/client-address.ts";
import { createNotices } from "../../../src/http/server/form-routes.ts";
import { createFailureLimit } from "../../../src/http/access/failure-limit.ts";
import { createIdempotency } from "../../../src/http/server/idempotency.ts";
import { createLoadShedding } from "../../../src/http/access/load-shedding.ts";
import { createRateLimit } from "../../../src/http/access/rate-limit.ts";
import { createEventIntake } from "../../../src/http/server/event-intake.ts";
import { createSessions } from "../../../src/http/access/session.ts";
import { createVisits } from "../../../src/http/access/last-visit.ts";
import { createStreamPace } from "../../../src/http/streams/event-stream.ts";
import { sleep } from "../../../src/platform/clock.ts";
import { checkpointFiles, type CheckpointStore } from "../../../src/log/checkpoint.ts";
import { createEventLog, STREAMS, type NewEvent, type EventLog } from "../../../src/log/event-log.ts";
import { logFiles } from "../../../src/log/log-files.ts";
import type { Instance } from "../../../src/log/instance-heartbeats.ts";
import { listHolders } from "../../../src/log/lease.ts";
import { signHeadNow, proveEvent } from "../../../src/log/signed-heads.ts";
import { createMetrics } from "../../../src/metrics/metrics.ts";
import { createVisitorSketch } from "../../../src/privacy/visitor-sketch.ts";
import { createLogVerifier } from "../../../src/log/verifier.ts";
import type { RunReport } from "../../../src/outreach/execute-run.ts";
import type { Runner, Triggered, TriggerRequest } from "../../../src/outreach/start-run.ts";
import { createPastStates, type PastStates } from "../../../src/projector/past-states.ts";
import { createFindLinkKeys } from "../../../src/recipients/record-consent.ts";
import { createSuppressionHashes } from "../../../src/recipients/suppress.ts";
import { createEraseHandler } from "../../../src/privacy/retention.ts";
import type { EncryptedLog } from "../../../src/privacy/encrypted-log.ts";
import { parseTemplate } from "../../../src/template/template.ts";
import { withSource } from "../../../src/config/tokens.ts";
import { consoleSettings } from "../../../src/service/shown-configuration.ts";
import { startProjector, type Projector } from "../../../src/projector/projector.ts";
import { openEncryptedMemoryLog, randomId, type LogEngine, type MemoryLog } from "./log.ts";

export const TOKEN = "token-of-the-tests";
export const MASTER_KEY = new Uint8Array(32).fill(3);
const START = Date.parse("2026-03-01T08:00:00.000Z");
const DAY_END = Date.parse("2026-03-02T00:00:00.000Z");

export interface AppHarness extends MemoryLog {
  readonly app: App;
  readonly projector: Projector;
  readonly deps: AppDeps;
  now: number;
  /** Messages sent today. */
  used: number;
  /** Outcome of pending dispatches; undefined if they do not end in time. */
  settlement: Settlement | undefined;
  /** The result of a trigger. */
  triggered: Triggered;
  readonly triggers: TriggerRequest[];
  /** Lines written by the logger. */
  readonly logged: string[];
  /** Restarts the service: a new app on the same log, with other parts. */
  restart(parts?: Partial<AppDeps>): App;
  append(stream: string, ...newEvents: NewEvent[]): Promise<void>;
  authorize(): Promise<void>;
}

export interface Given {
  readonly tokens?: boolean;
  readonly authPolicy?: "spec" | "strict";
  readonly openRoutes?: readonly string[];
  readonly channels?: readonly ChannelName[];
  /** States of the channels whose circuit is not closed. */
  readonly circuits?: Partial<Readonly<Record<ChannelName, Circuit>>>;
  readonly hosts?: readonly string[];
  readonly rateLimitPerMinute?: number;
  readonly trustedProxies?: readonly string[];
  readonly hasTemplate?: boolean;
  readonly hasX?: boolean;
  readonly isWritable?: boolean;
  /** Time since which the log is unreachable, in ms since 1970. */
  readonly awaySince?: number;
  /** How far this machine's clock is ahead of the log's, in ms. */
  readonly skewMs?: number;
  /** Instances that use the log; default: only this one. */
  readonly instances?: readonly Instance[];
  /** Aborts when the service begins to stop. */
  readonly stopping?: AbortSignal;
  /** Default: http://localhost. */
  readonly publicUrl?: string;
  /** Claims shared by instances; default: used by this one alone. */
  readonly claims?: Claims;
  /** Default: off. */
  readonly redirects?: "before" | "after";
  readonly env?: Readonly<Record<string, string>>;
  /** Default: reads of personal data are not recorded. */
  readonly auditReads?: true;
  /** Past states for the pages about earlier moments. */
  readonly past?: PastStates;
  /** Default: the machine's. */
  readonly logClock?: () => number;
  /** Default: a log in a file. */
  readonly engine?: LogEngine;
  /** A projection further behind than this many events is folded in the background; default: none. */
  readonly lateAfter?: number;
  /** Wraps the log for the projector. */
  readonly followed?: (store: EventStore<Event>) => EventStore<Event>;
  /** Events in the log before the projector starts. */
  readonly before?: readonly NewEvent[];
  /** Wraps the log for the app. */
  readonly store?: (store: EventStore<Event>) => EventStore<Event>;
  readonly account?: (parts: { eventLog: EventLog; projector: Projector; clock: () => number }) => AccountParts;
}

export async function openApp(given: Given = {}): Promise<AppHarness> {
  const clock = (): number => world.now;
  const log = await openEncryptedMemoryLog(MASTER_KEY, given.logClock, given.engine);
  const store = { ...log.store, ...given.store?.(log.store) };
  const eventLog = createEventLog(store, randomId);
  const { followed = (one) => one, before = [], lateAfter } = given;
  if (before.length > 0) await eventLog.append(STREAMS.outreach, before, {});
  const erase = createEraseHandler(log.store.keyring);
  const projector = log.use(await startProjector(followed(log.store), { erase, lateAfter }));
  const logged: string[] = [];
  const triggers: TriggerRequest[] = [];
  const runner: Runner = {
    async trigger(request) {
      triggers.push(request);
      return world.triggered;
    },
    recover: async () => {},
    reconcile: async () => ({ kind: "settled" }),
    async [Symbol.asyncDispose]() {},
  };
  const deps = wire({
    given,
    eventLog,
    encryptedLog: store,
    checkpoints: checkpointFiles(logFiles(log.folder.file("log.sqlite"))),
    projector,
    clock,
    runner,
    logged,
    used: () => world.used,
    settlement: () => world.settlement,
  });
  const world: AppHarness = {
    ...log,
    app: createApp(deps),
    eventLog,
    projector,
    deps,
    now: START,
    used: 63,
    settlement: { status: "delivered", latencyMs: 12 },
    triggered: { kind: "started", run_id: "run-1", done: Promise.resolve(REPORT) },
    triggers,
    logged,
    restart: (parts) =>
      createApp({ ...deps, idempotency: createIdempotency({ ...deps, sleep, makeId: randomId }), ...parts }),
    async append(stream, ...newEvents) {
      const { last } = await log.eventLog.append(stream, newEvents, {});
      await projector.until(last);
    },
    async authorize() {
      const user = { id: "1", username: "we", name: "We" };
      const data = { user, scopes: ["dm.write"], expires_at: "2027-01-01T00:00:00.000Z" };
      await world.append("account", { type: "AccountAuthorized", data });
    },
  };
  return world;
}

/** The vault's claims, in memory. */
export function createClaims() {
  const claimed = new Map<string, number>();
  const isClaimed = async (name: string, now: number): Promise<boolean> => (claimed.get(name) ?? 0) > now;
  return {
    isClaimed,
    async claim(name: string, until: number, now: number): Promise<boolean> {
      if (await isClaimed(name, now)) return false;
      claimed.set(name, until);
      return true;
    },
  };
}

type Claims = ReturnType<typeof createClaims>;

/** A template with two variants. */
const TEMPLATE = parseTemplate("Hi\n---\nHello");

export const INSTANCE: Instance = {
  id: "0195a0f0-0000-7000-8000-000000000001",
  url: "http://localhost:3000",
  version: "1.2.3",
  started_at: "2026-03-01T07:00:00.000Z",
  configuration: "0123456789ab",
  settings: {},
};

export const REPORT: RunReport = {
  run_id: "run-1",
  reason: "completed",
  sent: 3,
  skipped: 2,
  failed: 1,
  in_doubt: 0,
  started_at: "2026-03-01T08:00:00.000Z",
  finished_at: "2026-03-01T08:03:00.000Z",
  usage: { sends: 3, users: 4, followers: 0, posts: 0, messages: 2, usd: 0.105 },
};

interface Wiring {
  readonly given: Given;
  readonly eventLog: EventLog;
  readonly encryptedLog: EncryptedLog;
  readonly checkpoints: CheckpointStore;
  readonly projector: Projector;
  readonly clock: () => number;
  readonly runner: Runner;
  readonly logged: string[];
  readonly used: () => number;
  readonly settlement: () => Settlement | undefined;
}

function wire({
  given,
  eventLog,
  encryptedLog,
  checkpoints,
  projector,
  clock,
  runner,
  logged,
  used,
  settlement,
}: Wiring): AppDeps {
  const { channels = ["ads", "chat", "messaging"], hosts = ["localhost"] } = given;
  const sha256 = createHash("sha256").update(TOKEN).digest("hex");
  const access = {
    tokens: given.tokens === false ? [] : [{ name: "tests", sha256 }],
    authPolicy: given.authPolicy ?? "spec",
    openRoutes: given.openRoutes ?? [],
  };
  const authentication = createAuthentication(access, clock);
  const delivery: Delivery = {
    configured: channels,
    takeClicks: CLICK_CHANNELS.filter((channel) => channels.includes(channel)),
    circuit: (channel) => (channels.includes(channel) ? (given.circuits?.[channel] ?? "closed") : undefined),
    recognisesMs: (channel) => (channel === "ads" ? 48 * 3_600_000 : 0),
    settled: async () => settlement(),
  };
  const at =
    (level: string) =>
    (...line: unknown[]): void =>
      void logged.push(JSON.stringify([level, ...line]));
  const log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  const config = loadConfig(given.env ?? {}, () => "");
  const { publicUrl = "http://localhost", claims = createClaims() } = given;
  const site = new URL(publicUrl);
  const quota = { limit: 100, used, resetsAt: () => DAY_END };
  const { stopping = new AbortController().signal } = given;
  const hashesOf = createSuppressionHashes(MASTER_KEY);
  const account = given.account?.({ eventLog, projector, clock });
  const metrics = createMetrics();
  const load = createLoadShedding();
  const shared = {
    instances: () => given.instances ?? [INSTANCE],
    awaySince: () => given.awaySince,
    skewMs: () => given.skewMs ?? 0,
    roles: async () =>
      listHolders(eventLog, projector.isFolded("deliveries") ? listChannels(projector.state("deliveries")) : []),
  };
  const observed = { ...shared, projector, delivery, quota, load, clock, tokens: authentication.list };
  metrics.observe({ ...observed, store: eventLog.store, file: tmpdir() });
  const verifier = createLogVerifier({
    eventLog,
    checkpoints,
    clock,
    logger: log,
    announce: async (text) => void logged.push(`announced: ${text}`),
  });
  const past = given.past ?? createPastStates({ store: eventLog.store, projector, stopping });
  return {
    authentication,
    past,
    failureLimit: createFailureLimit(clock),
    hosts: new Set(hosts),
    clientAddress: createClientAddress(given.trustedProxies ?? []),
    isLocal: false,
    anonymousLimit: createRateLimit(() => given.rateLimitPerMinute ?? 600, clock),
    load,
    metrics,
    tracing: undefined,
    sessions: createSessions({ masterKey: MASTER_KEY, authentication, site, isLocal: true, claims, clock }),
    notices: createNotices(MASTER_KEY, site, clock),
    visits: createVisits(MASTER_KEY, site, clock),
    placeVisitor: createVisitorSketch(encryptedLog.keyring.keys, clock),
    verifier,
    signHead: () => signHeadNow(eventLog.store, checkpoints, clock),
    proveEvent: (position) => proveEvent(eventLog.store, checkpoints, clock, position),
    console: createConsole({
      store: eventLog.store,
      projector,
      past,
      live: { ...shared, circuit: delivery.circuit, verification: () => verifier.progress },
      settings: consoleSettings(config, delivery, {
        hashesOf,
        wantsToken: () => authentication.guardsConsole,
        tokens: () => withSource(authentication.list(), config.http),
      }),
      clock,
    }),
    stopping,
    streamPace: createStreamPace(() => 0, clock, sleep),
    idempotency: createIdempotency({ eventLog, sleep, logger: log, makeId: randomId, stopping }),
    sleep,
    random: Math.random,
    eventLog,
    encryptedLog,
    hashesOf,
    findLinkKeys: createFindLinkKeys(encryptedLog.keyring),
    eventIntake: createEventIntake(eventLog, encryptedLog.keyring.keys.revision, () => given.isWritable ?? true, log),
    projector,
    delivery,
    runner: given.hasX === false ? undefined : runner,
    config: {
      ...config,
      http: { ...config.http, publicUrl },
      auditReads: given.auditReads === true,
      links: { ...config.links, redirects: given.redirects },
      outreach: {
        ...config.outreach,
        template: given.hasTemplate === false ? undefined : (config.outreach.template ?? TEMPLATE),
      },
    },
    quota,
    account,
    version: "1.2.3",
    ...shared,
    clock,
    logger: log,
  };
}

export interface Ask {
  readonly method?: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A string or bytes are sent unchanged, anything else as JSON. */
  readonly body?: unknown;
}

/** Sends a request to the app. Checks that each error is a problem as in RFC 9457. */
export async function ask(
  app: App,
  path: string,
  { method = "GET", token, headers, body }: Ask = {},
): Promise<Response> {
  const sent = new Headers({ host: "localhost", ...headers });
  if (token !== undefined) sent.set("authorization", `Bearer ${token}`);
  if (body !== undefined && !sent.has("content-type")) sent.set("content-type", "application/json");
  const isRaw = typeof body === "string" || body instanceof Uint8Array || body instanceof ReadableStream;
  const init = { method, headers: sent, ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) }) };
  const response = await app.handle(new Request(`http://localhost${path}`, init as RequestInit));
  if (response.status >= 400 && method !== "HEAD" && !isPage(response)) await expectProblem(response.clone());
  return response;
}

export const post = (app: App, path: string, body: unknown, more: Ask = {}): Promise<Response> =>
  ask(app, path, { ...more, method: "POST", body });

function isPage(response: Response): boolean {
  return response.headers.get("content-type")?.startsWith("text/html") ?? false;
}

async function expectProblem(response: Response): Promise<void> {
  expect(response.headers.get("content-type")).toBe("application/problem+json");
  const problem = await response.json();
  expect(problem).toMatchObject({
    type: expect.stringMatching(/^urn:reachlog:problem:[a-z-]+$/),
    title: expect.any(String),
    status: response.status,
    detail: expect.any(String),
    instance: response.headers.get("x-request-id") ?? "",
  });
}

/** The slug of a problem's type. */
export async function slugOf(response: Response): Promise<string> {
  const { type } = (await response.json()) as { type: string };
  return type.replace("urn:reachlog:problem:", "");
}

/** The response's status and problem, e.g. `404 not-found`. */
export async function problemIn(response: Response): Promise<string> {
  return `${response.status} ${await slugOf(response)}`;
}

/** A valid body for each POST. */
export const GOOD = {
  "/social/run": {},
  "/api/notify": { message: "disk full", service: "web-1", level: "error" },
  "/api/tracking/event": {
    event: "click",
    domain: "sho.rt",
    short_code: "spring",
    original_url: "https://example.com/landing",
    ip: "192.0.2.1",
    user_agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
  },
  "/api/tracking/test": {},
  "/api/messaging": { text: "hello" },
} as const;
