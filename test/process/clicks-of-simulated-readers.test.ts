// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing";
import { FETCH_MS } from "../../projections/clicks-suspected-as-networks-own.ts";
import { VISITORS_ERROR } from "../../projections/estimate-visitors.ts";
import { results } from "../harness/in-process/operation-commands.ts";
import { openDay } from "../harness/in-process/outreach-day-with-virtual-clock.ts";
import {
  authorize,
  BEARER,
  exported,
  openInstallation,
  stop,
  until,
  type Installation,
  type ListeningService,
} from "../harness/process.ts";
import { startCollector, type Collector } from "../tracing/collector.ts";
import {
  ADDRESS_PREFIX,
  AGENT_SUFFIX,
  createBooks,
  createRandom,
  createReaders,
  createVisit,
  fetchAsX,
  followAll,
  HANDLE_SUFFIX,
  ID_PREFIX,
  listReaders,
  MESSAGES_A_DAY,
  READERS,
  readMessages,
  TEMPLATE,
  type Books,
  type Kind,
  type Reader,
} from "./audience/simulated-readers.ts";
import {
  find,
  outputOf,
  readableLinks,
  readBytes,
  readDecrypted,
  readFigures,
  readKeys,
  readNetworks,
} from "./audience/collect-outputs.ts";
import { countCases, countSituations } from "../harness/case-count.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** Numbers of requests by machines, by kind. X itself also fetches the links in the messages of the last day. */
const MACHINES: readonly (readonly [Kind, number])[] = [
  ["bot", countCases(500)],
  ["head", countCases(300)],
  ["prefetch", countCases(300)],
];
const PEOPLE: readonly (readonly [Kind, number])[] = [
  ["gpc", countCases(200)],
  ["dnt", countCases(100)],
  ["person", countCases(3_200)],
];

/** Maximum error of the visitor estimate, in standard errors; by chance one in 15,000 runs exceeds it. */
const ERRORS_MAX = 4;

interface Scene extends AsyncDisposable {
  readonly world: Installation;
  readonly readers: readonly Reader[];
}

/** Opens a service whose outreach agent has quickly sent messages on the two days before today. */
async function openScene(): Promise<Scene> {
  const readers = createReaders();
  await using opening = new AsyncDisposableStack();
  let live = false;
  let world: Installation | undefined;
  const midnight = Date.now() - (Date.now() % DAY_MS);
  const start = new Date(midnight - 2 * DAY_MS + 8 * HOUR_MS).toISOString();
  const open = async (clock: () => number): Promise<Installation> => {
    world = opening.use(await openInstallation({ clock: () => (live ? Date.now() : clock()), x: { dmLimit: 1_000 } }));
    Object.assign(world.env, SETTINGS);
    return world;
  };
  {
    await using day = await openDay({}, { start, open, people: (sandbox) => listReaders(readers, sandbox) });
    for (const at of [0, 1]) {
      day.time.jump(midnight - (2 - at) * DAY_MS + 8 * HOUR_MS - day.time.now());
      expect(await day.run()).toMatchObject({ reason: "daily_limit_reached", sent: MESSAGES_A_DAY });
    }
  }
  live = true;
  const opened = opening.move();
  return { world: world!, readers, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

const SETTINGS = {
  DAILY_LIMIT: String(MESSAGES_A_DAY),
  MESSAGE_TEMPLATE: TEMPLATE,
  LINK_BASE: "https://go.example",
  REDIRECTS: "on",
  PERSONAL_LINKS: "on",
  REQUIRE_CONSENT: "evidence",
  TRUSTED_PROXIES: "127.0.0.1",
  REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64"),
};

/** Runs today's outreach on a real service; X fetches the links of each message while the next one is sent. */
async function runToday(service: ListeningService, { world, readers }: Scene, books: Books): Promise<void> {
  const { sandbox } = world;
  await authorize(service, sandbox);
  const fetches: Promise<void>[] = [];
  const { messages } = sandbox.x;
  const add = messages.add.bind(messages);
  messages.add = (message) => {
    add(message);
    readMessages(readers, sandbox);
    const reader = readers.find(({ id }) => id === message.recipient_id)!;
    fetches.push(fetchAsX(service, books, reader));
  };
  const run = await service.post("/social/run", {}, { prefer: "wait=300", ...BEARER });
  expect(await run.json()).toMatchObject({ sent: MESSAGES_A_DAY, failed: 0, in_doubt: 0 });
  await Promise.all(fetches);
}

type Figures = {
  readonly sent: number;
  readonly clicks: Readonly<Record<"total" | "unique" | "suspected" | "anonymous" | "bots" | "probes", number>>;
  readonly tracked: Readonly<Record<"recipients" | "clicked" | "clicks" | "suspected", number>>;
};
type Answer = { readonly rows: readonly (Figures & { variant: string; link: string })[]; readonly total: Figures };

async function resultsBy(world: Installation, by: string, ...more: string[]): Promise<Answer> {
  return JSON.parse(await outputOf(world, results, "--by", by, "--json", ...more)) as Answer;
}

/**
 * Adds up the figures that the simulated audience recorded for the links whose name `isMeant` accepts. A visitor of two
 * links counts twice.
 */
function counted(books: Books, isMeant: (name: string) => boolean) {
  const sum = { total: 0, suspected: 0, anonymous: 0, bots: 0, probes: 0 };
  let visitors = 0;
  for (const [name, book] of books.links) {
    if (!isMeant(name)) continue;
    sum.total += book.clicks - book.suspected;
    for (const kind of ["suspected", "anonymous", "bots", "probes"] as const) sum[kind] += book[kind];
    visitors += book.visitors.size;
  }
  return { sum, visitors };
}

function expectClicks({ clicks: { unique, ...clicks } }: Figures, books: Books, isMeant: (name: string) => boolean) {
  const { sum, visitors } = counted(books, isMeant);
  expect(clicks).toEqual(sum);
  expect(Math.abs(unique - visitors)).toBeLessThanOrEqual(ERRORS_MAX * VISITORS_ERROR * visitors);
}

/** Returns the code of the link `name`, which all readers share who did not consent to tracking. */
function sharedCode(readers: readonly Reader[], name: string): string {
  const codes = readers
    .filter(({ variant, tracking }) => variant === name.charAt(0) && tracking !== "granted")
    .map((reader) => reader.codes[Number(name.charAt(1))]!);
  expect(new Set(codes).size).toBe(1);
  return codes[0]!;
}

/**
 * Compares all click figures of the service's results with those that the simulated audience recorded. `tracked` are
 * the readers whose own clicks the service may know.
 */
async function expectResults({ world, readers }: Scene, books: Books, tracked: readonly Reader[]): Promise<void> {
  const byVariant = await resultsBy(world, "variant");
  expect(byVariant.rows.map(({ variant }) => variant).sort()).toEqual(["A", "B", "C"]);
  for (const row of byVariant.rows) expectClicks(row, books, (name) => name.startsWith(row.variant));
  expectClicks(byVariant.total, books, () => true);
  const byLink = await resultsBy(world, "link");
  expect(byLink.rows).toHaveLength(books.links.size);
  for (const name of books.links.keys()) {
    const row = byLink.rows.find(({ link }) => link === `go.example/${sharedCode(readers, name)}`)!;
    expectClicks(row, books, (one) => one === name);
  }
  const ownOf = ({ codes }: Reader) => codes.flatMap((code) => books.own.get(code) ?? []);
  const own = tracked.flatMap(ownOf);
  expect((await resultsBy(world, "basis")).total.tracked).toMatchObject({
    recipients: tracked.length,
    clicked: tracked.filter((reader) => ownOf(reader).some(({ clicks }) => clicks > 0)).length,
    clicks: own.reduce((sum, { clicks }) => sum + clicks, 0),
    suspected: own.reduce((sum, { suspected }) => sum + suspected, 0),
  });
}

/** Compares each reader's own clicks in the log, by code, with those that the simulated audience recorded. */
async function expectOwnClicks(world: Installation, books: Books, tracked: readonly Reader[]): Promise<void> {
  const recorded: Record<string, number> = {};
  for (const { type, data } of await exported(world)) {
    const code = String(data["code"]);
    if (type === "PersonalLinkClicked" && code !== "erased") recorded[code] = (recorded[code] ?? 0) + 1;
  }
  const own = codesOf(tracked).flatMap((code) => {
    const book = books.own.get(code);
    return book === undefined ? [] : [[code, book.clicks + book.suspected] as const];
  });
  expect(recorded).toEqual(Object.fromEntries(own));
}

/** Returns the codes of the links of readers who consented to tracking; each code belongs to one reader. */
function codesOf(granted: readonly Reader[]): readonly string[] {
  return granted.flatMap(({ codes }) => codes);
}

/** Events that contain the id or username of any of these readers. */
async function eventsAbout(world: Installation, readers: readonly Reader[]): Promise<readonly string[]> {
  const names = readers.flatMap(({ id, username }) => [id, username]);
  const events = (await exported(world)).map((event) => JSON.stringify(event));
  return events.filter((text) => names.some((name) => text.includes(name)));
}

/**
 * Creates visits of these kinds in random order. Every tenth visit is made twice in a row: one visitor, but two clicks.
 */
function createVisits(random: (limit: number) => number, readers: readonly Reader[], kinds: typeof PEOPLE) {
  const visits = kinds.flatMap(([kind, count]) =>
    Array.from({ length: count }, () => createVisit(random, readers, kind)),
  );
  const mixed = visits.map((visit) => ({ visit, order: random(1_000_000) }));
  return mixed
    .sort((one, other) => one.order - other.order)
    .flatMap(({ visit }, at) => (at % 10 === 0 ? [visit, visit] : [visit]));
}

const VISITORS = [ADDRESS_PREFIX, AGENT_SUFFIX];
const IDENTITIES = [ID_PREFIX, HANDLE_SUFFIX];

/** Searches all that the service wrote and answered for personal data. Stops the service. */
async function expectNothingIndividual(
  { world, readers }: Scene,
  { requests }: Books,
  service: ListeningService,
  collector: Collector,
): Promise<void> {
  const codes = codesOf(readers.filter(isGranted));
  const needles = [...codes, ...IDENTITIES, ...VISITORS];
  expect(find(needles, await readFigures(world, service))).toEqual([]);
  expect(find([...codes, ...IDENTITIES], readNetworks(world))).toEqual([]);
  expect(await stop(service)).toBe(0);
  expect(collector.spans.some(({ name }) => name.startsWith("GET /l/"))).toBe(true);
  expect(find(needles, { traces: collector.posted.join("\n") })).toEqual([]);
  expect(find(needles, await readBytes(world))).toEqual([]);

  const decrypted = await readDecrypted(world);
  // Proves that the search works: with the keys, it finds all that it searched for.
  expect(find(needles, { events: decrypted["events"]! })).toHaveLength(needles.length);
  const clicks = (await exported(world)).filter(({ type }) => type === "LinkClicked");
  expect(clicks).toHaveLength(requests);
  expect(find([...codes, ...IDENTITIES], { clicks: JSON.stringify(clicks) })).toEqual([]);
  const states = Object.fromEntries(Object.entries(decrypted).filter(([where]) => where.startsWith("state ")));
  expect(Object.keys(states).length).toBeGreaterThan(10);
  expect(find(VISITORS, states)).toEqual([]);
}

function isGranted({ tracking }: Reader): boolean {
  return tracking === "granted";
}

/**
 * Withdraws some readers' consent to tracking, and erases other readers. Returns the remaining readers with consent:
 * the log still shows the clicks of each.
 */
async function withdraw(scene: Scene, books: Books, service: ListeningService): Promise<readonly Reader[]> {
  const { world, readers } = scene;
  const granted = readers.filter(isGranted);
  const revoked = granted.slice(0, 6);
  const forgotten = granted.slice(6, 10);
  const kept = granted.slice(10);
  const strangers = readers.filter((reader) => !isGranted(reader)).slice(0, 2);
  const { position } = (await exported(world)).at(-1)!;
  const before = await resultsBy(world, "variant");
  for (const [at, { username }] of revoked.entries()) await revoke(world, service, username, at === 0);
  for (const { username } of [...forgotten, ...strangers])
    expect((await service.post("/social/recipients/forget", { recipient: username }, BEARER)).status).toBe(200);

  const clicksOf = ({ rows }: Answer) => rows.map(({ variant, sent, clicks }) => ({ variant, sent, clicks }));
  const after = await resultsBy(world, "variant");
  expect(clicksOf(after)).toEqual(clicksOf(before));
  await expectResults(scene, books, kept);
  await expectOwnClicks(world, books, kept);
  expect(await readableLinks(world, codesOf([...revoked, ...forgotten]))).toEqual([]);
  expect((await readableLinks(world, codesOf(kept))).length).toBeGreaterThan(0);
  const past = await resultsBy(world, "basis", "--as-of", String(position));
  const ownClicks = codesOf(kept).reduce((sum, code) => sum + (books.own.get(code)?.clicks ?? 0), 0);
  expect(past.total.tracked.clicks).toBe(ownClicks);

  // Links of readers who revoked tracking still redirect, but their clicks are anonymous. Links of forgotten readers
  // answer 404.
  const visits = revoked.map((reader) => createVisit(createRandom(1), [reader], "person"));
  await followAll(service, createBooks(), visits);
  for (const code of codesOf(forgotten)) expect((await service.get(`/l/${code}`)).status).toBe(404);
  const own = (await exported(world)).filter(({ type }) => type === "PersonalLinkClicked");
  expect(own.at(-1)!.position).toBeLessThan(position);
  expect((await resultsBy(world, "variant")).total.clicks.total).toBe(after.total.clicks.total + visits.length);

  expect(await stop(service)).toBe(0);
  const names = [...forgotten, ...strangers].flatMap(({ id, username }) => [id, username]);
  expect(find([...names, ...codesOf(forgotten)], await readDecrypted(world))).toEqual([]);
  return kept;
}

test.each(["sqlite", "postgres"])(
  "clicks on the messages of three days (%s) are counted exactly, and readable only with consent to tracking",
  async (engine) => {
    await using scene = await openScene();
    await using collector = startCollector();
    const { world, readers } = scene;
    world.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url;
    const books = createBooks();
    const sending = await world.host();
    await runToday(sending, scene, books);
    const fetchedAt = Date.now();
    await stop(sending);
    if (engine === "postgres") await moveToServer(world);
    const service = await world.host();

    const granted = readers.filter(isGranted);
    const others = readers.filter((reader) => !isGranted(reader));
    expect([granted.length, others.length]).toEqual([READERS / 3, (2 * READERS) / 3]);
    const ownCodes = new Set(codesOf(granted));
    const sharedCodes = new Set(others.flatMap(({ codes }) => codes));
    expect([ownCodes.size, sharedCodes.size]).toEqual([codesOf(granted).length, books.links.size]);
    expect(ownCodes.isDisjointFrom(sharedCodes)).toBe(true);
    const before = await eventsAbout(world, others);

    const random = createRandom(20_261_126);
    await followAll(service, books, createVisits(random, readers, MACHINES));
    // People read a message after X has fetched its links.
    await until(
      async () => Date.now() - fetchedAt,
      (ms) => ms > FETCH_MS,
    );
    await followAll(service, books, createVisits(random, readers, PEOPLE));
    expect(books.requests).toBeGreaterThanOrEqual(countSituations(5_000));

    await expectResults(scene, books, granted);
    await expectOwnClicks(world, books, granted);
    expect(await eventsAbout(world, others)).toEqual(before);
    await expectNothingIndividual(scene, books, service, collector);

    const keys = readKeys(world);
    const again = await world.host();
    const kept = await withdraw(scene, books, again);
    expect(await world.command("audit", "verify")).toMatchObject({ code: 0 });
    const bytes = await readBytes(world);
    expect(find([...ownCodes, ...IDENTITIES, ...VISITORS], bytes)).toEqual([]);
    // The log keeps ciphertexts forever, so the deleted keys must have disappeared from all files.
    const keysLeft = readKeys(world);
    const deleted = [...keys].flatMap(([name, key]) => (keysLeft.get(name) === key ? [] : [key]));
    if (engine === "sqlite") expect(deleted.length).toBeGreaterThanOrEqual(10);
    expect(find(deleted, bytes)).toEqual([]);
    const replayed = await world.command("replay");
    expect(replayed).toMatchObject({ code: 0, out: expect.not.stringMatching(/[1-9]\d* differences/) });
    await expectOwnClicks(world, books, kept);
  },
);

async function moveToServer(world: Installation): Promise<void> {
  const DATABASE_URL = await newDatabase();
  const next = world.file("next.env", `DATABASE_URL=${DATABASE_URL}\n`);
  expect(await world.command("migrate", next)).toMatchObject({ code: 0 });
  Object.assign(world.env, { DATABASE_URL });
}

async function revoke(
  world: Installation,
  service: ListeningService,
  username: string,
  byCommand: boolean,
): Promise<void> {
  if (byCommand) {
    const evidence = ["--tracking", "denied", "--tracking-at", "2026-11-26", "--tracking-source", "mail"];
    expect(await world.command("recipients", "consent", username, ...evidence)).toMatchObject({ code: 0 });
    return;
  }
  const body = { recipient: username, tracking: "denied", tracking_source: "mail" };
  expect((await service.post("/social/recipients/consent", body, BEARER)).status).toBe(200);
}
