import { setTimeout as sleep } from "node:timers/promises";
import { openSqliteStore } from "eventstore-lite";
import {
  atMost,
  compare,
  roundsOf,
  type Bar,
  type Bench,
  type BenchOptions,
  type Row,
  timeWithChildren,
} from "eventstore-lite/bench";
import { codec, type Event } from "../../events/event-types-and-codec.ts";
import { onCopyOf } from "./log-copy.ts";
import { campaignName } from "./generate-campaign-events.ts";
import { mixedLog } from "./open-mixed-log.ts";
import { startService } from "./start-service-process.ts";

/** Number of events in the log, about a million of them clicks. */
const EVENTS = 2_100_000;
const EVENTS_QUICK = 50_000;
const PEOPLE = 100_000;
const PEOPLE_QUICK = 2_000;

/** Number of campaigns beside `default`. */
const CAMPAIGNS = 20;

/**
 * Maximum time in ms for a page of the console: an operator does not notice it. The next constant is the maximum size
 * of a page in KB, which a phone loads at once.
 */
const PAGE_MS = 200;
const PAGE_KB = 200;

/**
 * Measures each page of the console on the log of a busy half year with campaigns, current and as of past positions.
 * Compares the results with limits of 200 ms and 200 KB.
 */
export const consolePages: Bench = (options) => {
  const kind = { bench: "console-pages", settings: {}, headers: { accept: "text/html" }, kilobytesMax: PAGE_KB };
  return measureReads(options, kind, ({ pages }) => pages);
};

/** Measures GET requests of the API on the same log. Compares the results with a limit of 200 ms. */
export const apiReads: Bench = (options) => {
  const token = crypto.randomUUID();
  const headers = { authorization: `Bearer ${token}` };
  const kind = { bench: "api-reads", settings: { API_TOKENS: `bench:${token}` }, headers, kilobytesMax: undefined };
  return measureReads(options, kind, ({ reads }) => reads);
};

/** Group of paths that a benchmark reads: pages of the console, or GET requests of the API. */
interface ReadKind {
  readonly bench: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  /** Maximum size of an answer; undefined if only its time counts. */
  readonly kilobytesMax: number | undefined;
}

async function measureReads(
  options: BenchOptions,
  kind: ReadKind,
  choose: (addresses: Addresses) => readonly string[],
): Promise<readonly Row[]> {
  const events = options.events ?? (options.quick ? EVENTS_QUICK : EVENTS);
  const people = options.quick ? PEOPLE_QUICK : PEOPLE;
  const log = await mixedLog(options.logs, events, people, "spread", CAMPAIGNS);
  const addresses = await findAddresses(log);
  const rounds = roundsOf(options) * 4;
  const rows = await onCopyOf(log, (copy) => measure(copy, choose(addresses), { ...kind, events, rounds }));
  options.note(
    `the log holds ${events.toLocaleString("en")} events of ${people.toLocaleString("en")} people and ${CAMPAIGNS} campaigns, ${addresses.clicks.toLocaleString("en")} of them clicks; the limit is a fixed one, KB are uncompressed, and each round has a moment of its own`,
  );
  return rows;
}

async function measure(
  log: string,
  pages: readonly string[],
  { bench, settings, headers, kilobytesMax, events, rounds }: ReadKind & { events: number; rounds: number },
): Promise<readonly Row[]> {
  await using service = await startService(log, settings);
  for (const page of pages) if (!page.includes(MOMENT)) await untilFolded(service.url + page, headers);
  let moments = 0;
  const nextMoment = () => 1 + Math.floor(events * ((moments++ * GOLDEN_RATIO) % 1));
  const rows: Row[] = [];
  for (const page of pages) {
    const read: PageRead[] = [];
    // The first round does not count, because the page's code is compiled in it.
    for (let round = 0; round <= rounds; round++) {
      const before = timeWithChildren(service.pid);
      const one = await readPage(service.url + page.replace(MOMENT, String(nextMoment())), headers);
      read.push({ ...one, processorMs: (timeWithChildren(service.pid) - before) / 1_000 });
    }
    const counted = read.slice(1);
    const row = (what: string, unit: string, value: (one: PageRead) => number, limit: number, bar?: Bar) => {
      const limits = counted.map(() => limit);
      return compare(`${bench}, ${page}, ${what}`, unit, counted.map(value), limits, bar);
    };
    const refused = counted.filter(({ status }) => status !== 200);
    rows.push(
      row("time", "ms", ({ ms }) => ms, PAGE_MS, atMost(1)),
      // Processor time of all threads varies less than the time taken when other work shares the machine. Processor
      // time exceeds the time taken if two threads work at once.
      row("processor time", "ms", ({ processorMs }) => processorMs, PAGE_MS),
      ...(kilobytesMax === undefined ? [] : [row("size", "KB", ({ kilobytes }) => kilobytes, kilobytesMax, atMost(1))]),
      ...(refused.length === 0
        ? []
        : [row(`answered ${refused[0]?.status}`, "", ({ status }) => status, 200, atMost(1))]),
    );
  }
  return rows;
}

/** Placeholder for a past position in the address of a page. */
const MOMENT = "MOMENT";

/**
 * Golden ratio. The fractional parts of its multiples are spread evenly between 0 and 1, so they choose the past
 * positions.
 */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

interface Addresses {
  /** Number of clicks in the log. */
  readonly clicks: number;
  /** Paths of the console's pages. */
  readonly pages: readonly string[];
  /** Paths of GET requests of the API. */
  readonly reads: readonly string[];
}

/** Finds a recipient, a link, an event and campaigns of the log, and returns the paths that show them. */
async function findAddresses(log: string): Promise<Addresses> {
  await using store = await openSqliteStore<Event>({ file: log, codec });
  let clicks = 0;
  for await (const batch of store.readFolded({ types: ["LinkClicked"] })) clicks += batch.length;
  const [click] = await Array.fromAsync(store.read({ types: ["LinkClicked"], backwards: true, limit: 1 }));
  const [sent] = await Array.fromAsync(store.read({ types: ["DirectMessageSent"], backwards: true, limit: 1 }));
  if (click?.type !== "LinkClicked" || sent?.type !== "DirectMessageSent") throw new Error("the log is too short");
  const { domain, short_code } = click.data;
  const { run_id } = sent.data;
  const id = sent.data.recipient.id;
  const main = [
    "/",
    "/?range=90d",
    "/people",
    "/runs",
    "/activity",
    "/links",
    "/results",
    "/deliveries",
    "/attention",
    "/campaigns",
  ];
  const pages = [
    ...main,
    "/people?search=person_4999",
    "/people?sort=message&order=descending",
    `/people/${id}`,
    `/links/${domain}/${encodeURIComponent(short_code)}`,
    // This link is in all messages of the log.
    "/links/go.example/spring",
    `/runs/${run_id}`,
    "/campaigns/default",
    ...[0, 1, 2].map((number) => `/campaigns/${campaignName(number)}`),
    "/results?by=campaign",
    "/find?q=person_49",
    "/activity?type=RunFinished",
    `/activity/${click.position}`,
    `/activity/${sent.position}`,
    "/people/import",
    "/what-if",
    "/setup",
    ...main.map((page) => `${page}${page.includes("?") ? "&" : "?"}as_of=${MOMENT}`),
  ];
  const count = "/social/campaigns/count?";
  const now = [
    "/social/stats",
    "/social/stats?by=campaign",
    "/social/stats?by=day",
    "/social/quota",
    "/social/results",
    "/social/results?by=campaign",
    "/social/results?by=run",
    "/social/runs",
    "/social/campaigns",
    `/social/campaigns/show?name=${campaignName(0)}`,
    "/social/recipients",
    `/social/recipients/show?recipient=${id}`,
    "/social/account",
    "/api/links",
    `/api/clicks?link=${domain}/${encodeURIComponent(short_code)}`,
    "/api/deliveries/channels",
  ];
  const reads = [
    ...now,
    `${count}name=default`,
    ...[0, 1, 2].map((number) => `${count}name=${campaignName(number)}`),
    `${count}source=list&fields=company%3DCompany%201`,
    `/api/audit/history?subject=${id}`,
    "/api/deliveries",
    "/social/health",
    "/api/health",
    "/metrics",
    ...now.map((path) => `${path}${path.includes("?") ? "&" : "?"}as_of=${MOMENT}`),
  ];
  return { clicks, pages, reads };
}

interface PageRead {
  readonly ms: number;
  readonly processorMs: number;
  readonly kilobytes: number;
  readonly status: number;
}

/** Reads a page; a page that is not served counts as infinitely slow. */
async function readPage(url: string, headers: ReadKind["headers"]): Promise<Omit<PageRead, "processorMs">> {
  const start = performance.now();
  const { status, bytes } = await fetchPage(url, headers);
  return { ms: status === 200 ? performance.now() - start : Infinity, kilobytes: bytes / 1_000, status };
}

async function fetchPage(url: string, headers: ReadKind["headers"]) {
  const response = await fetch(url, { headers });
  return { status: response.status, bytes: (await response.arrayBuffer()).byteLength };
}

/** Waits until the states that the page shows are folded, which takes time after a start with a long log. */
async function untilFolded(url: string, headers: ReadKind["headers"]): Promise<void> {
  while ((await fetchPage(url, headers)).status === 503) await sleep(FOLDING_MS);
}

const FOLDING_MS = 500;
