import { createHash } from "node:crypto";
import { expect } from "bun:test";
import type { EventStore } from "eventstore-lite";
import { CLICK_CHANNELS, type ChannelName } from "../../../events/channel-and-lane-names.ts";
import type { Event } from "../../../events/event-types-and-codec.ts";
import type { Circuit } from "../../../src/delivery/pace-and-circuit-breaker.ts";
import type { Delivery, Settlement } from "../../../src/delivery/wait-for-outcome.ts";
import type { HttpContext } from "../../../src/http/http-context.ts";
import { createApp, type App } from "../../../src/http/app.ts";
import { createAuthentication } from "../../../src/http/access/bearer-tokens.ts";
import { createFailureLimit } from "../../../src/http/access/failed-authentication-limit.ts";
import { createIdempotency } from "../../../src/http/server/idempotency.ts";
import { createLoadShedding } from "../../../src/http/access/limit-requests-and-streams.ts";
import { createRateLimit } from "../../../src/http/access/rate-limit.ts";
import { createEventLog, STREAMS, type NewEvent, type StateContext } from "../../../src/log/event-log.ts";
import type { Instance } from "../../../src/log/instance-heartbeats.ts";
import { createMetrics } from "../../../src/metrics/metrics.ts";
import type { RunReport } from "../../../src/outreach/execute-run.ts";
import type { Runner, Triggered, TriggerRequest } from "../../../src/outreach/start-run.ts";
import type { PastStates } from "../../../src/projector/past-states.ts";
import { createSuppressionHashes } from "../../../src/privacy/suppression-hashes.ts";
import { parseTemplate } from "../../../src/template/template.ts";
import type { Projector } from "../../../src/projector/projector.ts";
import { logOn, randomId, type LogEngine, type MemoryLog } from "./temporary-log.ts";
import { temporaryFolder, type TemporaryFolder } from "../temporary-folder.ts";
import { newDatabase } from "eventstore-lite/testing";
import { loadConfig, type Config } from "../../../src/config/config.ts";
import type { LogConfig } from "../../../src/config/database.ts";
import { secret } from "../../../src/platform/secret.ts";
import type { Logger } from "../../../src/platform/logger.ts";
import { openReachlog } from "../../../src/service/open-reachlog.ts";
import { createHttpContext } from "../../../src/service/http-context.ts";
import type { Account } from "../../../src/account/link-and-unlink-account.ts";

export const TOKEN = "token-of-the-tests";
export const MASTER_KEY = new Uint8Array(32).fill(3);
const START = Date.parse("2026-03-01T08:00:00.000Z");
const DAY_END = Date.parse("2026-03-02T00:00:00.000Z");

export interface AppHarness extends MemoryLog {
  readonly app: App;
  readonly projector: Projector;
  readonly deps: HttpContext;
  now: number;
  /** Number of messages sent today, as the test sets it. */
  used: number;
  /** Outcome that the test sets for dispatches for which a caller waits; undefined if they do not end in time. */
  settlement: Settlement | undefined;
  /** Result of starting a run, as the test sets it. */
  triggered: Triggered;
  readonly triggers: TriggerRequest[];
  /** Lines that the app has written by its logger. */
  readonly logged: string[];
  /** Starts a new app on the same log, with other parts, as after a restart of the service. */
  restart(parts?: Partial<HttpContext>): App;
  append(stream: string, ...newEvents: NewEvent[]): Promise<void>;
  authorize(): Promise<void>;
}

export interface Given {
  readonly tokens?: boolean;
  readonly authPolicy?: "spec" | "strict";
  readonly openRoutes?: readonly string[];
  readonly channels?: readonly ChannelName[];
  /** States of the circuit breakers that are not closed, by channel. */
  readonly circuits?: Partial<Readonly<Record<ChannelName, Circuit>>>;
  readonly hosts?: readonly string[];
  readonly rateLimitPerMinute?: number;
  readonly trustedProxies?: readonly string[];
  readonly hasTemplate?: boolean;
  /** Text of the message template. Default: two variants without fields. */
  readonly template?: string;
  readonly hasX?: boolean;
  readonly isWritable?: boolean;
  /** Time since which the log has been unreachable, in ms since 1970; undefined if the log can be reached. */
  readonly awaySince?: number;
  /** How far this machine's clock is ahead of the log's, in ms. */
  readonly skewMs?: number;
  /** Instances that use the log; default: only this one. */
  readonly instances?: readonly Instance[];
  /** Aborts when the service begins to stop. */
  readonly stopping?: AbortSignal;
  /** Public address of the service; default: http://localhost. */
  readonly publicUrl?: string;
  /** Store in which instances claim names, so that no other instance can; default: a store that only this app uses. */
  readonly claims?: Claims;
  /** Moment at which short links redirect: before or after their click is stored; default: they do not redirect. */
  readonly redirects?: "before" | "after";
  readonly env?: Readonly<Record<string, string>>;
  /** True to record reads of personal data; default: not recorded. */
  readonly auditReads?: true;
  /** Past states, for pages about earlier moments. */
  readonly past?: PastStates;
  /** Clock of the log; default: the machine's. */
  readonly logClock?: () => number;
  /** Makes the ids of events; default: random ones, which do not contain the time. */
  readonly makeId?: () => string;
  /** Place of the log, in a file or on a server; default: in a file. */
  readonly engine?: LogEngine;
  /**
   * A projection that is behind by more events than this is folded in the background; default: all projections are
   * folded before the app starts.
   */
  readonly lateAfter?: number;
  /** Makes the account that the service acts for; default: X is not configured. */
  readonly account?: (context: StateContext) => Account;
  /** Wraps the log for the projector, which then follows the result. */
  readonly followed?: (store: EventStore<Event>) => EventStore<Event>;
  /** Events that are in the log before the projector starts. */
  readonly before?: readonly NewEvent[];
  /** Wraps the log for the app, which then uses the result. */
  readonly store?: (store: EventStore<Event>) => EventStore<Event>;
}

export async function openApp(given: Given = {}): Promise<AppHarness> {
  const clock = (): number => world.now;
  const opening = new AsyncDisposableStack();
  const folder = opening.use(temporaryFolder());
  const triggers: TriggerRequest[] = [];
  const runner: Runner = {
    async trigger(request) {
      triggers.push(request);
      return world.triggered;
    },
    recover: async () => {},
    reconcile: async () => ({ kind: "settled" }),
    lookUp: async () => ({ in_doubt: 1 }),
    lookup: () => undefined,
    async [Symbol.asyncDispose]() {},
  };
  const log = await placeLog(folder, given.engine);
  const logged: string[] = [];
  const opened = opening.use(await openServed(toConfig(given, log), given, createLines(logged)));
  const { projector } = opened;
  const encryptedLog = { ...opened.encryptedLog, ...given.store?.(opened.encryptedLog) };
  const eventLog = createEventLog(encryptedLog, given.makeId ?? randomId);
  const deps = createDeps(given, { ...opened, clock, encryptedLog, eventLog }, runner, {
    used: () => world.used,
    settlement: () => world.settlement,
  });
  const unwrapped = logOn(opened.encryptedLog, folder, opening);
  const world: AppHarness = {
    ...unwrapped,
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
    restart: (parts) => createApp({ ...deps, idempotency: createIdempotency(deps, deps.stopping), ...parts }),
    async append(stream, ...newEvents) {
      const { last } = await unwrapped.eventLog.append(stream, newEvents, {});
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

async function placeLog(folder: TemporaryFolder, engine: LogEngine = "in a file"): Promise<LogConfig> {
  if (engine === "in a file") return { kind: "sqlite", file: folder.file("log.sqlite") };
  const database = { url: secret(await newDatabase()), shown: "the test's server" };
  return { kind: "postgres", ...database, keys: database };
}

function toConfig(given: Given, log: LogConfig): Config {
  const { publicUrl = "http://localhost", trustedProxies = [] } = given;
  const config = loadConfig(given.env ?? {}, () => "");
  const template =
    given.hasTemplate === false ? undefined : (config.outreach.template ?? parseTemplate(given.template ?? TEMPLATE));
  return {
    ...config,
    log,
    key: secret(MASTER_KEY.toBase64()),
    http: { ...config.http, publicUrl, trustedProxies },
    auditReads: given.auditReads === true,
    links: { ...config.links, redirects: given.redirects },
    outreach: { ...config.outreach, template },
  };
}

/** Returns a logger that collects its lines for a test. */
function createLines(logged: string[]): Logger {
  const at =
    (level: string) =>
    (...line: unknown[]): void =>
      void logged.push(JSON.stringify([level, ...line]));
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** Opens the log as a service does; the service is one of the given instances of that log. */
function openServed(config: Config, given: Given, logger: Logger) {
  const { logClock: clock, lateAfter, followed: follow, before = [], instances: live = [INSTANCE] } = given;
  const makeId = given.makeId ?? randomId;
  const overrides = { logger, makeId, clock, lateAfter, writerThread: false, ...(follow && { follow }) };
  const member = { saves: () => true, async [Symbol.asyncDispose]() {} };
  return openReachlog(config, overrides, {
    owner: undefined,
    onCommit: () => {},
    observe: (eventLog) => eventLog,
    async join({ eventLog }) {
      if (before.length > 0) await eventLog.append(STREAMS.outreach, before, {});
      return {
        ...member,
        instances: { live, isOldest: member.saves, ...member },
        metrics: createMetrics(),
        tracing: undefined,
      };
    },
  });
}

/** Creates a store of claims in memory, in place of the one in the vault. */
export function createClaims() {
  const claimed = new Map<string, number>();
  const isClaimed = async (name: string, now: number): Promise<boolean> => (claimed.get(name) ?? 0) > now;
  return {
    isClaimed,
    async claim(name: string, until: number, now: number): Promise<boolean> {
      if ((claimed.get(name) ?? 0) > now) return false;
      claimed.set(name, until);
      return true;
    },
  };
}

type Claims = ReturnType<typeof createClaims>;

/** Message template with two variants, for tests. */
const TEMPLATE = "Hi\n---\nHello";

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

/** Values that a test changes while the app runs. */
interface Moving {
  readonly used: () => number;
  readonly settlement: () => Settlement | undefined;
}

function createDeps(
  given: Given,
  opened: Awaited<ReturnType<typeof openServed>>,
  runner: Runner,
  { used, settlement }: Moving,
): HttpContext {
  const { clock, logger } = opened;
  const { channels = ["ads", "chat", "messaging"], hosts = ["localhost"], claims = createClaims(), past } = given;
  const sha256 = createHash("sha256").update(TOKEN).digest("hex");
  const access = {
    tokens: given.tokens === false ? [] : [{ name: "tests", sha256 }],
    authPolicy: given.authPolicy ?? "spec",
    openRoutes: given.openRoutes ?? [],
  };
  const delivery: Delivery = {
    configured: channels,
    takeClicks: CLICK_CHANNELS.filter((channel) => channels.includes(channel)),
    circuit: (channel) => (channels.includes(channel) ? (given.circuits?.[channel] ?? "closed") : undefined),
    recognisesMs: (channel) => (channel === "ads" ? 48 * 3_600_000 : 0),
    settled: async () => settlement(),
  };
  const context = {
    ...opened,
    vault: { ...opened.vault, ...claims },
    logClock: { ...opened.logClock, skewMs: () => given.skewMs ?? 0 },
    hashesOf: createSuppressionHashes(MASTER_KEY),
    announce: async (text: string) => logger.warn(`announced: ${text}`),
  };
  const parts = {
    authentication: createAuthentication(access, clock),
    failureLimit: createFailureLimit(clock),
    delivery,
    account: given.account?.(context),
    runner: given.hasX === false ? undefined : runner,
    load: createLoadShedding(),
    awaySince: () => given.awaySince,
    isWritable: () => given.isWritable ?? true,
    stopping: given.stopping ?? new AbortController().signal,
  };
  return createHttpContext(context, parts, {
    hosts: new Set(hosts),
    isLocal: false,
    anonymousLimit: createRateLimit(() => given.rateLimitPerMinute ?? 600, clock),
    quota: { limit: 100, used, resetsAt: () => DAY_END },
    version: "1.2.3",
    ...(past && { past }),
  });
}

export interface Ask {
  readonly method?: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Body of the request; a string or bytes are sent unchanged, anything else as JSON. */
  readonly body?: unknown;
}

/** Sends a test's request to the app. Checks that each error is a problem as in RFC 9457. */
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

/** Returns the slug of a problem's type, such as `not-found`. */
export async function slugOf(response: Response): Promise<string> {
  const { type } = (await response.json()) as { type: string };
  return type.replace("urn:reachlog:problem:", "");
}

/** Returns the status and the problem of a response, such as `404 not-found`. */
export async function problemIn(response: Response): Promise<string> {
  return `${response.status} ${await slugOf(response)}`;
}

/** Path of each POST endpoint -> a body that the endpoint accepts. */
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
