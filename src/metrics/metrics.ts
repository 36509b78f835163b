import { readdir, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import Counter from "prom-client/lib/counter.js";
import Registry from "prom-client/lib/registry.js";
import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import { runEnd } from "../../events/outreach.ts";
import { countCampaigns } from "../../projections/message-totals.ts";
import { toTokenId, type ApiToken } from "../config/parse-api-tokens.ts";
import type { Delivery } from "../delivery/wait-for-outcome.ts";
import { nextTurn } from "../platform/work-in-time-slices.ts";
import type { Projector } from "../projector/projector.ts";
import { createAppendMetrics } from "./appends.ts";
import { type ChannelSources, createDispatchMetrics, observeChannels } from "./delivery.ts";
import { createCounter, lookUp, lookUpEach } from "./register-instruments.ts";
import { type InstanceSources, type LogSources, observeInstances, observeLog } from "./log-lag-and-instances.ts";
import { VERSION } from "../platform/version.ts";

export type Metrics = ReturnType<typeof createMetrics>;

interface Observed extends ChannelSources, InstanceSources, Omit<LogSources, "projector">, OutreachSources {
  /** Returns the API tokens that are configured now. */
  readonly tokens: () => readonly ApiToken[];
  readonly delivery: Delivery;
  /** Path of the log's file; undefined if the log is on a database server. */
  readonly file: string | undefined;
}

export const METRICS_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/**
 * Creates the service's metrics for Prometheus. Few of them are counted when something happens, so that a click costs
 * little; all others are looked up at each scrape.
 */
export function createMetrics(configured: readonly ChannelName[] = []) {
  const registry = new Registry();
  return {
    appends: createAppendMetrics(registry),
    dispatches: createDispatchMetrics(registry, configured),
    countAnswer: createAnswerCount(registry),
    /** Registers the metrics that are looked up in these parts of the service at each scrape. */
    observe(parts: Observed): void {
      observeChannels(registry, parts);
      observeInstances(registry, parts);
      observeLog(registry, parts);
      observeOutreach(registry, parts);
      observeTokens(registry, parts);
      observeProcess(registry, parts.file);
    },
    /** Returns all metrics in Prometheus's text format, of the media type {@link METRICS_TYPE}. */
    text: (): Promise<string> => registry.metrics(),
  };
}

function observeTokens(registry: Registry, { tokens, clock }: Observed): void {
  const help = "Time until a token of a caller expires, negative once it has; none for a token without an end.";
  lookUpEach(registry, ["reachlog_token_expires_seconds", help, ["name", "token"]], function* () {
    for (const { name, sha256, expiresAt } of tokens())
      if (expiresAt !== undefined) yield [{ name, token: toTokenId(sha256) }, (expiresAt - clock()) / 1_000];
  });
}

interface OutreachSources {
  readonly projector: Projector;
  readonly quota: { readonly limit: number; readonly used: () => number };
}

/** Value of the label `reason` for a run that ended because its process died. */
const ABANDONED = "abandoned";

/**
 * Registers metrics of the X account, the day's quota, the run in progress, campaigns, and the runs that ended while
 * this process ran.
 */
function observeOutreach(registry: Registry, { projector, quota }: OutreachSources): void {
  const run = () => projector.state("run");
  const account = () => projector.state("account");
  lookUp(registry, [
    ["reachlog_quota_limit", "Messages that may be sent on one day.", () => quota.limit],
    ["reachlog_quota_used", "Messages of today, those in doubt included.", quota.used],
    ["reachlog_run_running", "1 while a run is in progress.", () => Number(run().current !== null)],
    [
      "reachlog_run_waiting",
      "1 while the run waits, such as for a rate limit.",
      () => Number((run().current?.waiting ?? null) !== null),
    ],
    [
      "reachlog_messages_in_doubt",
      "Messages in doubt: it is not known yet whether they were sent.",
      () => [...run().open.values()].filter(({ in_doubt }) => in_doubt).length,
    ],
    ["reachlog_account_linked", "1 once an account was linked.", () => Number(account().user !== null)],
    ["reachlog_account_authorized", "1 while the account's grant is valid.", () => Number(account().authorized)],
  ]);

  const about = [
    "reachlog_campaign_messages",
    "All messages of a campaign, by outcome; none without campaigns.",
    ["campaign", "outcome"],
  ] as const;
  lookUpEach(registry, about, function* () {
    const stats = projector.state("stats");
    if (stats.campaigns === undefined) return;
    for (const { campaign, ...counts } of countCampaigns(stats))
      for (const outcome of ["sent", "failed", "skipped"] as const)
        yield [{ campaign, outcome }, counts[outcome]] as const;
  });
  const ended = createCounter(
    registry,
    "reachlog_runs_ended_total",
    "Runs that ended while this process ran, by reason; dry runs are not counted.",
    ["reason"],
  );
  // Each reason begins at 0, because Prometheus sees no increase in a counter whose first value is 1.
  for (const reason of [...runEnd.anyOf.map((end) => end.const), ABANDONED]) ended.inc({ reason }, 0);
  projector.listen(({ type, data }) => {
    if (type === "RunFinished") ended.inc({ reason: data.reason });
    else if (type === "RunAbandoned") ended.inc({ reason: ABANDONED });
  });
}

/** Folder where Linux lists a process's open file descriptors. */
const DESCRIPTORS = "/proc/self/fd";

/**
 * Registers metrics of the process and of the log's disk, by the names that dashboards expect. Does not use those of
 * the library prom-client, which wake the process a hundred times a second to measure the event loop.
 */
function observeProcess(registry: Registry, file: string | undefined): void {
  const startedAt = Math.round(Date.now() / 1_000 - process.uptime());
  const cpu = new Counter({
    name: "process_cpu_seconds_total",
    help: "Processor time of all threads, user and system.",
    registers: [registry],
    collect() {
      const { user, system } = process.cpuUsage();
      cpu.reset();
      cpu.inc((user + system) / 1_000_000);
    },
  });
  lookUp(registry, [
    ["process_start_time_seconds", "When the process started, Unix time.", () => startedAt],
    ["process_resident_memory_bytes", "Memory that the process holds.", () => process.memoryUsage.rss()],
    ["process_open_fds", "Open file descriptors; NaN where unknown.", async () => (await readdir(DESCRIPTORS)).length],
    [
      "reachlog_event_loop_delay_seconds",
      "Duration of one turn of the event loop, measured at this request.",
      measureTurn,
    ],
  ]);
  const build = ["reachlog_build_info", "1, with the version.", ["version"]] as const;
  lookUpEach(registry, build, () => [[{ version: VERSION }, 1]]);
  if (file === undefined) return;
  const space = (blocks: "blocks" | "bavail") => async (): Promise<number> => {
    const stats = await statfs(dirname(file));
    return stats.bsize * stats[blocks];
  };
  lookUp(registry, [
    ["reachlog_disk_size_bytes", "Size of the file system that holds the log.", space("blocks")],
    ["reachlog_disk_available_bytes", "Free space on the file system that holds the log.", space("bavail")],
  ]);
}

async function measureTurn(): Promise<number> {
  const askedAt = performance.now();
  await nextTurn();
  return (performance.now() - askedAt) / 1_000;
}

/** An endpoint whose answers are counted. Each has one object, which identifies it. */
interface CountedEndpoint {
  readonly method: string;
  readonly path: string;
}

/**
 * Creates the function that counts answers; the endpoint is undefined for an unknown path. Counts are handed over at
 * each scrape, because the library would look up their labels as text for every request.
 */
function createAnswerCount(registry: Registry): (endpoint: CountedEndpoint | undefined, status: number) => void {
  const counts = new Map<CountedEndpoint | undefined, Map<number, number>>();
  const answers = new Counter({
    name: "reachlog_http_answers_total",
    help: "Answers, by endpoint and status; endpoint none: the path is unknown.",
    labelNames: ["endpoint", "status"],
    registers: [registry],
    collect() {
      answers.reset();
      for (const [counted, byStatus] of counts) {
        const endpoint = counted === undefined ? "none" : `${counted.method} ${counted.path}`;
        for (const [status, count] of byStatus) answers.inc({ endpoint, status }, count);
      }
    },
  });
  return (endpoint, status) => {
    let byStatus = counts.get(endpoint);
    if (byStatus === undefined) counts.set(endpoint, (byStatus = new Map<number, number>()));
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
  };
}
