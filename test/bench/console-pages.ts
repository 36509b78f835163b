import { openSqliteStore } from "eventstore-lite";
import { atMost, compare, roundsOf, type Bench, type Row } from "eventstore-lite/bench/measure";
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

/** Each page of the console on the log of a busy year, against 200 ms and 200 KB. */
export const consolePages: Bench = async (options) => {
  const log = await mixedLog(
    options.logs,
    options.quick ? EVENTS_QUICK : EVENTS,
    options.quick ? PEOPLE_QUICK : PEOPLE,
  );
  const { clicks, pages } = await pagesOf(log);
  const rows = await onCopyOf(log, (copy) => measure(copy, pages, roundsOf(options) * 4));
  const people = (options.quick ? PEOPLE_QUICK : PEOPLE).toLocaleString("en");
  options.note(`the log holds ${people} people and ${clicks.toLocaleString("en")} clicks; the limit is a fixed one`);
  return rows;
};

async function measure(log: string, pages: readonly string[], rounds: number): Promise<readonly Row[]> {
  await using service = await startService(log);
  const rows: Row[] = [];
  for (const page of pages) {
    const read: { readonly ms: number; readonly kilobytes: number }[] = [];
    // One that does not count: it compiles what the page is made by.
    for (let round = 0; round <= rounds; round++) read.push(await readPage(service.url + page));
    const counted = read.slice(1);
    const row = (what: string, unit: string, value: (one: (typeof counted)[number]) => number, limit: number) =>
      compare(
        `console-pages, ${page}, ${what}`,
        unit,
        counted.map(value),
        counted.map(() => limit),
        atMost(1),
      );
    rows.push(
      row("time", "ms", ({ ms }) => ms, PAGE_MS),
      row("size", "KB", ({ kilobytes }) => kilobytes, PAGE_KB),
    );
  }
  return rows;
}

/** The pages, with a person, a link and an event of the log. */
async function pagesOf(log: string): Promise<{ readonly clicks: number; readonly pages: readonly string[] }> {
  await using store = await openSqliteStore<Event>({ file: log, codec });
  let clicks = 0;
  for await (const batch of store.readFolded({ types: ["LinkClicked"] })) clicks += batch.length;
  const [click] = await Array.fromAsync(store.read({ types: ["LinkClicked"], backwards: true, limit: 1 }));
  const [sent] = await Array.fromAsync(store.read({ types: ["DirectMessageSent"], backwards: true, limit: 1 }));
  if (click?.type !== "LinkClicked" || sent?.type !== "DirectMessageSent") throw new Error("the log is too short");
  const { domain, short_code } = click.data;
  const pages = [
    "/",
    "/people",
    "/people?search=person_4999",
    "/people?sort=message&order=descending",
    `/people/${sent.data.recipient.id}`,
    "/links",
    `/links/${domain}/${encodeURIComponent(short_code)}`,
    // In all messages.
    "/links/go.example/spring",
    "/deliveries",
    "/results",
    "/activity",
    "/activity?type=RunFinished",
    `/activity/${click.position}`,
    "/setup",
  ];
  return { clicks, pages };
}

async function readPage(url: string): Promise<{ readonly ms: number; readonly kilobytes: number }> {
  const start = performance.now();
  const response = await fetch(url, { headers: { accept: "text/html" } });
  const bytes = (await response.arrayBuffer()).byteLength;
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}`);
  return { ms: performance.now() - start, kilobytes: bytes / 1_000 };
}
