import { expect } from "bun:test";
import type { NewEvent } from "../../../src/log/event-log.ts";
import type { Tracking } from "../../../events/outreach.ts";
import type { Sandbox } from "../../../sandbox/sandbox.ts";
import { isWhole } from "../../harness/case-count.ts";
import { addedOf } from "../../harness/in-process/make-recipient-and-click-events.ts";
import type { ListeningService } from "../../harness/process.ts";

/** Messages of each of three days. The shorter run of all tests sends a quarter of the most that a day may have. */
export const MESSAGES_A_DAY = isWhole ? 100 : 25;

/** Number of readers: each gets one message. */
export const READERS = 3 * MESSAGES_A_DAY;

/**
 * Prefix of each reader's id. Like the suffix of the usernames, it occurs nowhere else. All ids have the same length,
 * and so have all usernames, so that none contains another.
 */
export const ID_PREFIX = "88442211";
export const HANDLE_SUFFIX = "_reads";

/** Prefix of each visitor's address (RFC 2544). */
export const ADDRESS_PREFIX = "198.18.";
/** Suffix of each visitor's user agent, by which it is found in outputs. */
export const AGENT_SUFFIX = "Audience/7";

/** Targets of the links in each variant of the message, in the order of the text. */
const TARGETS: Readonly<Record<string, readonly string[]>> = {
  A: ["https://shop.example/offer?from=a"],
  B: ["https://shop.example/offer", "https://shop.example/help"],
  C: ["https://shop.example/offer"],
};

export const TEMPLATE = Object.entries(TARGETS)
  .map(([variant, targets]) => `${variant} for {{name}}: ${targets.map((target) => `{{link ${target}}}`).join(" or ")}`)
  .join("\n---\n");

/** A recipient who has read their message. */
export interface Reader {
  readonly number: number;
  readonly id: string;
  readonly username: string;
  readonly tracking: Tracking;
  /** Variant of the message; empty if none has arrived. */
  variant: string;
  /** Codes of the message's links. */
  codes: readonly string[];
}

export function createReaders(): readonly Reader[] {
  return Array.from({ length: READERS }, (_, number) => {
    const digits = String(number).padStart(3, "0");
    const tracking = (["granted", "denied", "unknown"] as const)[number % 3]!;
    return { number, id: ID_PREFIX + digits, username: `r${digits}${HANDLE_SUFFIX}`, tracking, variant: "", codes: [] };
  });
}

/** Adds the readers to X, and returns the events that import them. */
export function listReaders(readers: readonly Reader[], { x }: Sandbox): NewEvent[] {
  const evidence = { consent_at: "2026-01-05", consent_source: "https://shop.example/form" };
  return readers.map(({ id, username, tracking }) => {
    x.people.set(id, { id, username, name: "Reader", receives_your_dm: true });
    const asked = tracking === "unknown" ? {} : { tracking, tracking_at: "2026-01-05", tracking_source: "form" };
    return addedOf({ username }, { name: "you", ...evidence, ...asked });
  });
}

/** Reads each reader's links from the messages that X accepted. The audience knows links from nowhere else. */
export function readMessages(readers: readonly Reader[], { x }: Sandbox): void {
  const byId = new Map(readers.map((reader) => [reader.id, reader]));
  for (const { recipient_id, text } of x.messages.kept) {
    const reader = byId.get(recipient_id);
    if (reader === undefined) continue;
    reader.variant = text.charAt(0);
    reader.codes = Array.from(text.matchAll(/https:\/\/go\.example\/(\w+)/g), ([, code]) => code!);
    expect(reader.codes).toHaveLength(TARGETS[reader.variant]!.length);
  }
}

export type Kind = "person" | "gpc" | "dnt" | "bot" | "head" | "prefetch" | "fetched";

export interface Visit {
  readonly reader: Reader;
  /** Index of the link in the reader's message. */
  readonly link: number;
  readonly kind: Kind;
  readonly address: string;
  readonly agent: string;
}

/** Counts of the visits to one link of a variant. The link has several codes, and visits by any of them count here. */
export interface LinkBook {
  clicks: number;
  suspected: number;
  anonymous: number;
  bots: number;
  probes: number;
  readonly visitors: Set<string>;
}

/** The test's own record of all visits, with which the service's figures are compared. */
export interface Books {
  /** Counts for each link, by its name: `A0` is the first link of variant A. */
  readonly links: Map<string, LinkBook>;
  /** Counts by the code of a reader's own link. */
  readonly own: Map<string, { clicks: number; suspected: number }>;
  requests: number;
}

export function createBooks(): Books {
  return { links: new Map(), own: new Map(), requests: 0 };
}

const HEADERS: Readonly<Record<Kind, Readonly<Record<string, string>>>> = {
  person: {},
  gpc: { "sec-gpc": "1" },
  dnt: { dnt: "1" },
  bot: {},
  head: {},
  prefetch: { "sec-purpose": "prefetch;prerender" },
  fetched: {},
};

/** Requests the link of a message as its visitor does, and records the visit. */
export async function follow(service: ListeningService, books: Books, visit: Visit): Promise<void> {
  const { reader, link, kind, address, agent } = visit;
  const headers = { "user-agent": agent, "x-forwarded-for": address, ...HEADERS[kind] };
  const method = kind === "head" ? "HEAD" : "GET";
  const answer = await service.get(`/l/${reader.codes[link]}`, { method, headers });
  expect([answer.status, answer.headers.get("location")]).toEqual([302, TARGETS[reader.variant]![link]!]);
  note(books, visit);
}

function note(books: Books, { reader, link, kind, address, agent }: Visit): void {
  books.requests++;
  const name = reader.variant + link;
  const empty = { clicks: 0, suspected: 0, anonymous: 0, bots: 0, probes: 0, visitors: new Set<string>() };
  const book = books.links.get(name) ?? empty;
  books.links.set(name, book);
  if (kind === "head" || kind === "prefetch") book.probes++;
  else if (kind === "bot") book.bots++;
  else book.clicks++;
  if (kind === "gpc" || kind === "dnt") book.anonymous++;
  if (kind === "fetched") book.suspected++;
  // Visitors are counted once for each UTC day, and the test may run past midnight.
  if (kind === "person") book.visitors.add(`${new Date().toISOString().slice(0, 10)} ${address} ${agent}`);
  if (reader.tracking !== "granted" || (kind !== "person" && kind !== "fetched")) return;
  const code = reader.codes[link]!;
  const own = books.own.get(code) ?? { clicks: 0, suspected: 0 };
  books.own.set(code, own);
  if (kind === "person") own.clicks++;
  else own.suspected++;
}

/**
 * Returns a generator of pseudo-random integers from 0 to `limit` - 1; the same seed gives the same numbers (Lehmer
 * 1951, with Park and Miller's factor).
 */
export function createRandom(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % limit;
  };
}

/** User agents of browsers, without the version. */
const BROWSERS = [
  "X11; Linux x86_64; rv:140.0",
  "Windows NT 10.0; Win64; x64; rv:141.0",
  "Android 15; Mobile; rv:142.0",
];
const BOTS = [
  "Twitterbot/1.0",
  "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
  "facebookexternalhit/1.1",
];

function toAgent(device: number): string {
  return `Mozilla/5.0 (${BROWSERS[device % BROWSERS.length]}) Gecko/20100101 Firefox/140.0 ${AGENT_SUFFIX}`;
}

/** Number of people who visit a reader's link: the reader and three friends who saw the message. */
const VISITORS_PER_READER = 4;

/** Creates a visit of this kind to a link in a reader's message, by the reader or a friend. */
export function createVisit(random: (limit: number) => number, readers: readonly Reader[], kind: Kind): Visit {
  const reader = readers[random(readers.length)]!;
  const visitor = reader.number * VISITORS_PER_READER + random(VISITORS_PER_READER);
  const agent = kind === "bot" ? BOTS[random(BOTS.length)]! : toAgent(visitor);
  const address = `${ADDRESS_PREFIX}${Math.floor(visitor / 250)}.${1 + (visitor % 250)}`;
  return { reader, link: random(reader.codes.length), kind, address, agent };
}

/** Number of browsers that X imitates when it fetches a link after its own bot. */
const FETCHES = 3;

/** Fetches each link of a message as X does when it accepts the message: once as X's own bot, then as browsers. */
export async function fetchAsX(service: ListeningService, books: Books, reader: Reader): Promise<void> {
  for (const link of reader.codes.keys()) {
    const address = "199.16.156.120";
    await follow(service, books, { reader, link, kind: "bot", address, agent: "Twitterbot/1.0" });
    for (let device = 0; device < FETCHES; device++)
      await follow(service, books, { reader, link, kind: "fetched", address, agent: toAgent(device) });
  }
}

/** The test makes at most this many visits to links at the same time. */
const AT_ONCE = 40;

export async function followAll(service: ListeningService, books: Books, visits: readonly Visit[]): Promise<void> {
  for (let at = 0; at < visits.length; at += AT_ONCE)
    await Promise.all(visits.slice(at, at + AT_ONCE).map((visit) => follow(service, books, visit)));
}
