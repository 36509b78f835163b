// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { Tracking } from "../../events/outreach.ts";
import { VISITORS_ERROR } from "../../projections/estimate-visitors.ts";
import type { Results } from "../../projections/message-outcomes-and-reactions.ts";
import { createResults } from "../../src/history/results.ts";
import { type Grouping } from "../../src/history/results-figures.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { openApp, post, TOKEN, type AppHarness } from "../harness/in-process/app.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { createRandom } from "../harness/random.ts";

const TRACKING: readonly Tracking[] = ["granted", "denied", "unknown"];
const VARIANTS = ["A", "B", "C"] as const;
const RECIPIENTS = 300;
const CLICKS = 5_000;
const DAYS = 3;
const DAY_MS = 86_400_000;
const START = Date.parse("2026-03-01T06:00:00.000Z");
/** Number of clicks that the test sends in parallel. */
const TOGETHER = 25;

interface Member {
  readonly id: string;
  readonly username: string;
  readonly tracking: Tracking;
  readonly variant: (typeof VARIANTS)[number];
  /** Code of the short link in the message that this member of the audience received. */
  readonly code: string;
}

/**
 * The audience's own record of clicks on the links of one message variant, with which the service's results are
 * compared.
 */
interface Book {
  clicks: number;
  suspected: number;
  anonymous: number;
  bots: number;
  probes: number;
  /** People who visited the links, each as a day and a user agent. */
  readonly visitors: Set<string>;
}

const audience = Array.from({ length: RECIPIENTS }, (_, number): Member => {
  const tracking = TRACKING[number % TRACKING.length]!;
  const variant = VARIANTS[Math.floor(number / TRACKING.length) % VARIANTS.length]!;
  const code = tracking === "granted" ? `own-code-${String(number).padStart(6, "0")}` : `shared-${variant}`;
  return { id: String(1_000 + number), username: `user_${number}`, tracking, variant, code };
});

const browserOf = (visitor: string): string => `Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0 ${visitor}`;

function createBooks() {
  const newBook = (): Book => ({ clicks: 0, suspected: 0, anonymous: 0, bots: 0, probes: 0, visitors: new Set() });
  return {
    ofVariant: new Map<string, Book>(VARIANTS.map((variant) => [variant, newBook()])),
    ofMember: new Map(
      audience.filter(({ tracking }) => tracking === "granted").map(({ id }) => [id, { clicks: 0, suspected: 0 }]),
    ),
  };
}

type Books = ReturnType<typeof createBooks>;

function follow(world: AppHarness, code: string, headers: Record<string, string>, method = "GET") {
  return world.app.handle(
    new Request(`http://go.example/l/${code}`, { method, headers: { host: "go.example", ...headers } }),
  );
}

/** Sends each member their message. For every fifth message, X also fetches the links with user agents of browsers. */
async function send(world: AppHarness, books: Books): Promise<void> {
  for (const variant of VARIANTS) {
    const added = { domain: "go.example", code: `shared-${variant}`, target: "https://shop.example/", variant };
    await world.append(STREAMS.outreach, { type: "LinkAdded", data: { ...added, template: "autumn" } });
  }
  for (const [number, { id, username, tracking, variant, code }] of audience.entries()) {
    const outcome = { attempt_id: `attempt-${id}`, run_id: "run-1", recipient: { id, username } };
    const links = [`go.example/shared-${variant}`];
    const own = tracking === "granted" ? { personal_links: [{ code, link: links[0]! }] } : {};
    const text = { text: `https://go.example/${code}`, template: "autumn", variant, links, day: "2026-03-01" };
    const events: NewEvent[] = [
      addedOf({ id, username }, { tracking, tracking_at: "2026-02-01", tracking_source: "form" }),
      { type: "DirectMessageAttempted", data: { ...outcome, ...text, basis: "opt_in", source: "list", ...own } },
      { type: "DirectMessageSent", data: { ...outcome, message_id: `m${number}`, settled_by: "answer" } },
    ];
    world.now += 15_000;
    await world.append(STREAMS.outreach, ...events);
    if (number % 5 !== 0) continue;
    const book = books.ofVariant.get(variant)!;
    world.now += 1_000;
    await follow(world, code, { "user-agent": "Twitterbot/1.0" });
    book.bots++;
    for (const fetcher of ["fetcher-1", "fetcher-2"]) {
      await follow(world, code, { "user-agent": browserOf(fetcher) });
      book.clicks++;
      book.suspected++;
      if (tracking === "granted") books.ofMember.get(id)!.suspected++;
    }
  }
}

/**
 * Simulates clicks on the links in messages, by recipients and by other people who use the shared link. Includes
 * repeated clicks, bots, prefetches, HEAD requests, and browsers that send Sec-GPC (a refusal of tracking).
 */
async function click(world: AppHarness, books: Books): Promise<void> {
  const random = createRandom(20_261_126);
  const begin = world.now + 60_000;
  for (let done = 0; done < CLICKS;) {
    world.now = begin + Math.floor((done / CLICKS) * DAYS * DAY_MS);
    const day = new Date(world.now).toISOString().slice(0, 10);
    const pending: Promise<Response>[] = [];
    for (let together = 0; together < TOGETHER && done < CLICKS; together++, done++) {
      const member = audience[Math.floor(random() * audience.length)]!;
      const isStranger = member.tracking !== "granted" && random() < 0.3;
      const visitor = isStranger ? `stranger-${Math.floor(random() * 2_000)}` : `${member.id}-device`;
      pending.push(visit(world, books, { member, visitor, day, kind: random() }));
      // The visitor taps twice.
      if (random() < 0.1 && ++done < CLICKS) pending.push(visit(world, books, { member, visitor, day, kind: 0 }));
    }
    for (const { status } of await Promise.all(pending)) expect(status).toBe(302);
  }
}

interface Visit {
  readonly member: Member;
  readonly visitor: string;
  readonly day: string;
  /** Random number from 0 to 1 that selects the kind of the request. */
  readonly kind: number;
}

function visit(world: AppHarness, books: Books, { member, visitor, day, kind }: Visit): Promise<Response> {
  const { id, code, variant } = member;
  const book = books.ofVariant.get(variant)!;
  const browser = { "user-agent": browserOf(visitor) };
  if (kind > 0.92) {
    book.bots++;
    return follow(world, code, { "user-agent": "Mozilla/5.0 (compatible; Googlebot/2.1)" });
  }
  if (kind > 0.84) {
    book.probes++;
    return kind > 0.88
      ? follow(world, code, browser, "HEAD")
      : follow(world, code, { ...browser, purpose: "prefetch" });
  }
  book.clicks++;
  if (kind > 0.78) {
    book.anonymous++;
    return follow(world, code, { ...browser, "sec-gpc": "1" });
  }
  book.visitors.add(`${day} ${visitor}`);
  const own = books.ofMember.get(id);
  if (own !== undefined) own.clicks++;
  return follow(world, code, browser);
}

function trackedOf({ messages, tracked }: Results, id: string) {
  return messages.get(tracked.get(id) ?? -1)?.tracked;
}

test("results equal the audience's own records and keep clicks after a revocation and an erasure", async () => {
  let now: () => number = () => START;
  await using world = await openApp({
    redirects: "before",
    hosts: ["localhost", "go.example"],
    rateLimitPerMinute: 1e9,
    logClock: () => now(),
  });
  world.now = START;
  now = () => world.now;
  const books = createBooks();
  await send(world, books);
  await click(world, books);
  await world.projector.until((await world.store.head()).position);

  const resultsBy = (by: Grouping) => {
    const { projector } = world;
    const states = {
      conversions: projector.state("conversions"),
      results: projector.state("results"),
      runs: projector.state("runs"),
      visits: projector.state("visits"),
    };
    return createResults(states, by, { from: undefined, to: undefined });
  };
  const before = await resultsBy("variant");
  expect(before.rows).toHaveLength(VARIANTS.length);
  for (const { group, figures } of before.rows) {
    const { visitors, ...counts } = books.ofVariant.get(group.variant!)!;
    const { clicks, suspected, anonymous, bots, probes } = counts;
    const { unique, ...others } = figures.clicks!;
    expect(figures.sent).toBe(audience.filter(({ variant }) => variant === group.variant).length);
    expect(others).toEqual({ total: clicks - suspected, suspected, anonymous, bots, probes });
    expect(Math.abs(unique / visitors.size - 1)).toBeLessThan(3 * VISITORS_ERROR);
  }
  const state = world.projector.state("results");
  for (const { id, tracking } of audience) {
    const { clicks, suspected } = trackedOf(state, id) ?? {};
    expect([id, { clicks: clicks?.length, suspected: suspected?.length }]).toEqual([
      id,
      tracking === "granted" ? books.ofMember.get(id)! : { clicks: undefined, suspected: undefined },
    ]);
  }
  const own = [...books.ofMember.values()];
  expect(before.total.figures.tracked).toMatchObject({
    recipients: own.length,
    clicked: own.filter(({ clicks }) => clicks > 0).length,
    clicks: own.reduce((sum, { clicks }) => sum + clicks, 0),
    suspected: own.reduce((sum, { suspected }) => sum + suspected, 0),
  });
  const days = (await resultsBy("day")).rows;
  expect(days.reduce((sum, { figures }) => sum + figures.clicks!.total, 0)).toBe(before.total.figures.clicks!.total);

  const [revoking, leaving] = [audience[0]!, audience[3]!];
  await world.append(STREAMS.outreach, {
    type: "ConsentRecorded",
    data: { recipient: { id: revoking.id }, tracking: "denied", tracking_source: "message" },
  });
  const forget = { recipient: leaving.id };
  expect((await post(world.app, "/social/recipients/forget", forget, { token: TOKEN })).status).toBe(200);
  const after = await resultsBy("variant");
  expect(after.rows.map(({ figures: { sent, clicks } }) => ({ sent, clicks }))).toEqual(
    before.rows.map(({ figures: { sent, clicks } }) => ({ sent, clicks })),
  );
  expect(after.total.figures.tracked.recipients).toBe(own.length - 2);
  for (const { id } of [revoking, leaving]) expect(trackedOf(world.projector.state("results"), id) ?? null).toBeNull();
});
