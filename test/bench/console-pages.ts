import { setTimeout as sleep } from "node:timers/promises";
import { openSqliteStore } from "eventstore-lite";
import { atMost, compare, roundsOf, type Bar, type Bench, type Row } from "eventstore-lite/bench/measure";
import { timeWithChildren } from "eventstore-lite/bench/processor-time";
import { codec, type Event } from "../../events/catalog.ts";
import { onCopyOf } from "./copied.ts";
import { mixedLog } from "./mixed-logs.ts";
import { startService } from "./server.ts";

/** Of which about a million are clicks. */
const EVENTS = 2_100_000;
const EVENTS_QUICK = 50_000;
const PEOPLE = 100_000;
const PEOPLE_QUICK = 2_000;

/** What an operator does not wait for, and what a phone loads at once. */
const PAGE_MS = 200;
const PAGE_KB = 200;

/** Each page of the console on the log of a busy half year, now and as of moments of it, against 200 ms and 200 KB. */
export const consolePages: Bench = async (options) => {
  const events = options.events ?? (options.quick ? EVENTS_QUICK : EVENTS);
  const people = options.quick ? PEOPLE_QUICK : PEOPLE;
  const log = await mixedLog(options.logs, events, people, "spread");
  const { clicks, pages } = await pagesOf(log);
  const rows = await onCopyOf(log, (copy) => measure(copy, pages, { events, rounds: roundsOf(options) * 4 }));
  options.note(
    `the log holds ${events.toLocaleString("en")} events of ${people.toLocaleString("en")} people, ${clicks.toLocaleString("en")} of them clicks; the limit is a fixed one, KB are of uncompressed HTML, and each round has a moment of its own`,
  );
  return rows;
};

async function measure(
  log: string,
  pages: readonly string[],
  { events, rounds }: { readonly events: number; readonly rounds: number },
): Promise<readonly Row[]> {
  await using service = await startService(log);
  for (const page of pages) if (!page.includes(MOMENT)) await untilFolded(service.url + page);
  let moments = 0;
  const nextMoment = () => 1 + Math.floor(events * ((moments++ * GOLDEN_RATIO) % 1));
  const rows: Row[] = [];
  for (const page of pages) {
    const read: PageRead[] = [];
    // One that does not count: it compiles what the page is made by.
    for (let round = 0; round <= rounds; round++) {
      const before = timeWithChildren(service.pid);
      const one = await readPage(service.url + page.replace(MOMENT, String(nextMoment())));
      read.push({ ...one, processorMs: (timeWithChildren(service.pid) - before) / 1_000 });
    }
    const counted = read.slice(1);
    const row = (what: string, unit: string, value: (one: PageRead) => number, limit: number, bar?: Bar) => {
      const limits = counted.map(() => limit);
      return compare(`console-pages, ${page}, ${what}`, unit, counted.map(value), limits, bar);
    };
    const refused = counted.filter(({ status }) => status !== 200);
    rows.push(
      row("time", "ms", ({ ms }) => ms, PAGE_MS, atMost(1)),
      // All threads' together: steadier where others use the machine, and more than the time where two work at once.
      row("processor time", "ms", ({ processorMs }) => processorMs, PAGE_MS),
      row("size", "KB", ({ kilobytes }) => kilobytes, PAGE_KB, atMost(1)),
      ...(refused.length === 0
        ? []
        : [row(`answered ${refused[0]?.status}`, "", ({ status }) => status, 200, atMost(1))]),
    );
  }
  return rows;
}

/** Stands in a page's address for the position of a moment. */
const MOMENT = "MOMENT";

/** Its multiples, without their whole parts, are nowhere near each other. */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/** The pages, with a person, a link and an event of the log. */
async function pagesOf(log: string): Promise<{ readonly clicks: number; readonly pages: readonly string[] }> {
  await using store = await openSqliteStore<Event>({ file: log, codec });
  let clicks = 0;
  for await (const batch of store.readFolded({ types: ["LinkClicked"] })) clicks += batch.length;
  const [click] = await Array.fromAsync(store.read({ types: ["LinkClicked"], backwards: true, limit: 1 }));
  const [sent] = await Array.fromAsync(store.read({ types: ["DirectMessageSent"], backwards: true, limit: 1 }));
  if (click?.type !== "LinkClicked" || sent?.type !== "DirectMessageSent") throw new Error("the log is too short");
  const { domain, short_code } = click.data;
  const main = ["/", "/?range=90d", "/people", "/runs", "/links", "/results", "/deliveries"];
  const pages = [
    ...main,
    "/people?search=person_4999",
    "/people?sort=message&order=descending",
    `/people/${sent.data.recipient.id}`,
    `/links/${domain}/${encodeURIComponent(short_code)}`,
    // In all messages.
    "/links/go.example/spring",
    "/activity",
    "/activity?type=RunFinished",
    `/activity/${click.position}`,
    `/activity/${sent.position}`,
    "/setup",
    ...main.map((page) => `${page}${page.includes("?") ? "&" : "?"}as_of=${MOMENT}`),
  ];
  return { clicks, pages };
}

interface PageRead {
  readonly ms: number;
  readonly processorMs: number;
  readonly kilobytes: number;
  readonly status: number;
}

/** One that is not shown counts as one that takes for ever. */
async function readPage(url: string): Promise<Omit<PageRead, "processorMs">> {
  const start = performance.now();
  const { status, bytes } = await fetchPage(url);
  return { ms: status === 200 ? performance.now() - start : Infinity, kilobytes: bytes / 1_000, status };
}

async function fetchPage(url: string): Promise<{ readonly status: number; readonly bytes: number }> {
  const response = await fetch(url, { headers: { accept: "text/html" } });
  return { status: response.status, bytes: (await response.arrayBuffer()).byteLength };
}

/** After a start with a long log, until what the page shows is folded. */
async function untilFolded(url: string): Promise<void> {
  while ((await fetchPage(url)).status === 503) await sleep(FOLDING_MS);
}

const FOLDING_MS = 500;
