// These tests run parts of the service inside the test process.
import type { DataOf } from "../../../events/event-types-and-codec.ts";
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import type { ChannelName } from "../../../events/channel-and-lane-names.ts";
import { DISPATCHES_LISTED } from "../../../src/delivery/undelivered-pages.ts";
import { STREAMS, type NewEvent } from "../../../src/log/event-log.ts";
import { disposedAfterEach } from "../../harness/dispose.ts";
import { ask, openApp, post, problemIn, TOKEN, type AppHarness } from "../../harness/in-process/app.ts";
import { outcomeOf } from "../../harness/in-process/dispatch-outcome-events.ts";
import { clickOf } from "../../harness/in-process/make-recipient-and-click-events.ts";

const HOUR_MS = 3_600_000;

const disposed = disposedAfterEach();

const CLICK: NewEvent = clickOf({ channels: ["chat", "ads"] });

const gaveUp = (source: number, channel: ChannelName, more: object = {}): NewEvent =>
  outcomeOf("DispatchAbandoned", { source, channel, lane: "clicks", detail: "gone", refused: true, ...more });

/**
 * Opens an app with three dead letters: two of the chat channel, and one of the ads channel whose last attempt may have
 * arrived `agoMs` ago. Returns the ids of the clicks that caused them.
 */
async function openWithLetters(agoMs = HOUR_MS) {
  const harness = disposed(await openApp());
  await harness.append(STREAMS.requests, CLICK, CLICK, CLICK);
  await harness.append(STREAMS.delivery("chat"), gaveUp(1, "chat"), gaveUp(2, "chat"));
  const doubtful_since = new Date(harness.now - agoMs).toISOString();
  await harness.append(STREAMS.delivery("ads"), gaveUp(3, "ads", { doubtful_since }));
  const ids = (await Array.fromAsync(harness.store.read({ to: 3 }))).map(({ id }) => id);
  const asked = async (path: string, body: object): Promise<unknown> => {
    const answer = await post(harness.app, `/api/deliveries/${path}`, body, { token: TOKEN });
    if (!answer.ok) return problemIn(answer);
    const { until_position: _, ...decided } = (await answer.json()) as { readonly until_position: number };
    return decided;
  };
  const kinds = async () =>
    (await Array.fromAsync(harness.store.read({ from: 7 }))).map(({ type, meta }) => `${type} by ${meta.caller}`);
  return { harness, ids, asked, kinds };
}

const NONE_LEFT = { left: [], left_count: 0 };
const UNKNOWN = "01a1fd59-3b3a-7515-964c-67ff53c10ed1";

test("named dead letters are retried, and other named events are left with a reason", async () => {
  const { ids, asked, kinds } = await openWithLetters();
  const left = [{ event_id: UNKNOWN, channel: null, why: "no_dead_letter" }];
  expect(await asked("retry", { event_ids: [ids[0], UNKNOWN] })).toEqual({ done: 1, left, left_count: 1 });
  expect(await kinds()).toEqual(["DispatchRetryRequested by tests"]);
  expect(await asked("discard", { event_ids: [ids[0]], why: "over" })).toMatchObject({ done: 0, left_count: 1 });
  expect(await asked("discard", { all: true, channel: "chat", why: "over" })).toEqual({ done: 1, ...NONE_LEFT });
  expect(await asked("retry", { all: true })).toEqual({ done: 1, ...NONE_LEFT });
  expect(await asked("retry", { all: true })).toEqual({ done: 0, ...NONE_LEFT });
});

test("a dead letter that may have arrived is retried after 48 hours only with accept_doubles", async () => {
  const known = await openWithLetters(47 * HOUR_MS);
  expect(await known.asked("retry", { all: true, channel: "ads" })).toEqual({ done: 1, ...NONE_LEFT });
  const { ids, asked } = await openWithLetters(48 * HOUR_MS);
  const left = [{ event_id: ids[2], channel: "ads", why: "may_double" }];
  expect(await asked("retry", { all: true })).toEqual({ done: 2, left, left_count: 1 });
  expect(await asked("retry", { all: true, accept_doubles: true })).toEqual({ done: 1, ...NONE_LEFT });
});

test("dead letters of a suspended channel are not retried, but discarded up to until_position", async () => {
  const { harness, asked } = await openWithLetters();
  const data = { channel: "chat", network: "slack", detail: "gone", credential: "c" } as const;
  await harness.append(STREAMS.delivery("chat"), { type: "ChannelSuspended", data });
  expect(await asked("retry", { all: true, channel: "chat" })).toMatchObject({
    done: 0,
    left: [{ why: "suspended" }, { why: "suspended" }],
  });
  expect(await asked("discard", { all: true, until_position: 4, why: "over" })).toMatchObject({ done: 1 });
  expect(harness.projector.state("deliveries").chat.dead).toBe(1);
});

test.each([
  ["retry", {}],
  ["retry", { all: false }],
  ["retry", { all: true, event_ids: [UNKNOWN] }],
  ["retry", { event_ids: [] }],
  ["retry", { event_ids: ["x"] }],
  ["retry", { all: true, why: "over" }],
  ["retry", { all: true, channel: "fax" }],
  ["retry", { all: true, error: "6xx" }],
  ["retry", { all: true, status: "in_doubt", accept_doubles: true }],
  ["retry", { status: "in_doubt", event_ids: [UNKNOWN] }],
  ["retry", { status: "in_doubt", event_ids: [UNKNOWN, UNKNOWN], accept_doubles: true }],
  ["retry", { error: "5xx" }],
  ["discard", { status: "in_doubt", event_ids: [UNKNOWN], why: "over" }],
  ["settle", { event_ids: [UNKNOWN], why: "over" }],
  ["settle", { event_ids: [UNKNOWN], as: "arrived" }],
  ["settle", { event_ids: [UNKNOWN], as: "lost", why: "over" }],
  ["settle", { event_ids: [UNKNOWN], as: "left", why: " " }],
  ["discard", { all: true }],
  ["discard", { all: true, why: "  " }],
  ["discard", { all: true, why: "x".repeat(501) }],
])("%s refuses %j and records nothing", async (path, body) => {
  const { asked, kinds } = await openWithLetters();
  expect(await asked(path, body)).toBe("422 invalid-request");
  expect(await kinds()).toEqual([]);
});

test.each([{ from: "yesterday" }, { from: "2026-03-02", to: "2026-03-01" }, { to: "86" }])(
  "retry refuses the filter %j and records nothing",
  async (filter) => {
    const { asked, kinds } = await openWithLetters();
    expect(await asked("retry", { all: true, ...filter })).toBe("422 unusable-filter");
    expect(await kinds()).toEqual([]);
  },
);

interface Listing {
  readonly count: number;
  readonly until_position: number;
  readonly dispatches: readonly { readonly source: number; readonly channel: string; readonly status: string }[];
  readonly next: string | null;
}

async function list({ app }: AppHarness, query: Record<string, string> = {}): Promise<Listing> {
  const answer = await ask(app, `/api/deliveries?${new URLSearchParams(query)}`, { token: TOKEN });
  expect(answer.status).toBe(200);
  return (await answer.json()) as Listing;
}

/** Reads all pages of the list of dead letters. */
async function listAll(harness: AppHarness, query: Record<string, string>) {
  const pages: Listing[] = [await list(harness, query)];
  for (let next = pages[0]?.next; next !== null && next !== undefined; next = pages.at(-1)?.next) {
    pages.push(await list(harness, { ...query, after: next }));
  }
  return { count: pages[0]?.count, dispatches: pages.flatMap(({ dispatches }) => dispatches) };
}

test("the list has a page and the total count, and refuses unknown filters", async () => {
  const { harness, ids } = await openWithLetters();
  const listing = await list(harness, { channel: "chat" });
  expect(listing).toMatchObject({ count: 2, until_position: 6, next: null });
  expect(listing.dispatches[1]).toEqual({
    event_id: ids[0] ?? "",
    channel: "chat",
    status: "dead",
    link: "go.example/x",
    attempts: 1,
    refused: true,
    http_status: null,
    detail: "gone",
    doubtful_since: null,
    ended_at: expect.any(String) as string,
    source: 1,
    position: 4,
  } as never);
  for (const query of ["status=pending", "error=teapot", "channel=fax", "from=x"]) {
    const answer = await ask(harness.app, `/api/deliveries?${query}`, { token: TOKEN });
    expect(await problemIn(answer)).toBe("422 unusable-filter");
  }
  const answer = await ask(harness.app, "/api/deliveries?after=1", { token: TOKEN });
  expect(await problemIn(answer)).toBe("422 invalid-request");
  expect((await ask(harness.app, "/api/deliveries")).status).toBe(401);
});

const DOMAINS = ["go.example", "Go.example", "other.example"];
const CODES = ["x", "X", "y"];
const FAILURES = [
  { mode: "single", status: 400 },
  { mode: "single", status: 429 },
  { mode: "batch", status: 503 },
  { mode: "single" },
  {},
] as const;

const endings = fc.record({
  domain: fc.constantFrom(...DOMAINS),
  short_code: fc.constantFrom(...CODES),
  channel: fc.constantFrom("chat" as const, "ads" as const),
  failure: fc.constantFrom(...FAILURES),
  status: fc.constantFrom("dead", "dead", "in_doubt"),
  refused: fc.boolean(),
});

const filters = fc.record(
  {
    channel: fc.constantFrom("chat", "ads"),
    error: fc.constantFrom("refused", "exhausted", "no_answer", "no_request", "4xx", "5xx", "429", "503", "1xx"),
    link: fc.constantFrom("go.example/x", "https://GO.example/X", "other.example", "other.example/y", "go.example"),
    to: fc.constantFrom("2000-01-01", "2100-01-01"),
    from: fc.constantFrom("1999-12-31", "1999-12-31T23:00:00+01:00"),
  },
  { requiredKeys: [] },
);

type Given = typeof endings extends fc.Arbitrary<infer One> ? One : never;
type Query = typeof filters extends fc.Arbitrary<infer One> ? One : never;

/**
 * True if the query's filters must select this dead letter. A filter for the time until 2000 selects none, because
 * every dead letter is newer.
 */
function isMeant({ domain, short_code, channel, failure, refused }: Given, query: Query): boolean {
  const { error, link } = query;
  const status = "status" in failure ? String(failure.status) : "";
  const classes = [refused ? "refused" : "exhausted", status, status === "" ? "" : `${status[0]}xx`];
  if (status === "") classes.push("mode" in failure ? "no_answer" : "no_request");
  const [wantedDomain = "", code] = link?.replace("https://", "").split("/") ?? [];
  const isLink =
    link === undefined || (domain.toLowerCase() === wantedDomain.toLowerCase() && (code ?? short_code) === short_code);
  return (
    isLink &&
    (query.channel ?? channel) === channel &&
    (error === undefined || classes.includes(error)) &&
    query.to !== "2000-01-01"
  );
}

test("for any filter, list, dry run and decision mean the same dispatches", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(endings, { maxLength: 60 }), filters, fc.boolean(), async (given, query, isRetry) => {
      await using harness = await openApp();
      const clicks = given.map(({ domain, short_code, channel }) =>
        clickOf({ domain, short_code, channels: [channel] }),
      );
      if (clicks.length > 0) await harness.append(STREAMS.requests, ...clicks);
      for (const [at, { channel, failure, status, refused }] of given.entries()) {
        const about = { source: at + 1, channel, lane: "clicks", detail: "d", ...failure } as const;
        const ending =
          status === "dead"
            ? outcomeOf("DispatchAbandoned", { ...about, refused })
            : outcomeOf("DispatchInDoubt", about);
        await harness.append(STREAMS.delivery(channel), ending);
      }
      const before = await listAll(harness, query);
      const untouched = await listAll(harness, { ...query, status: "in_doubt" });
      expect(before.dispatches.length).toBe(before.count ?? -1);
      const meant = given.flatMap((one, at) => (one.status === "dead" && isMeant(one, query) ? [at + 1] : []));
      expect(before.dispatches.map(({ source }) => source).toReversed()).toEqual(meant);
      const decide = async (more: object) => {
        const body = { ...query, ...more, all: true, ...(isRetry ? {} : { why: "over" }) };
        const answer = await post(harness.app, `/api/deliveries/${isRetry ? "retry" : "discard"}`, body, {
          token: TOKEN,
        });
        return (await answer.json()) as { done: number; until_position: number };
      };
      const { position } = await harness.store.head();
      const counted = await decide({ dry_run: true });
      expect([counted.done, (await harness.store.head()).position]).toEqual([before.count ?? -1, position]);
      const decided = await decide({ expected: counted.done, until_position: counted.until_position });
      expect(decided.done).toBe(counted.done);
      const events = await Array.fromAsync(harness.store.read({ from: position + 1 }));
      const done = events.map(({ data }) => data as { source: number; channel: string });
      const key = (one: { source: number; channel: string }) => `${one.channel} ${one.source}`;
      expect(done.map(key).sort()).toEqual(before.dispatches.map(key).sort());
      expect((await list(harness, query)).count).toBe(0);
      expect((await decide({})).done).toBe(0);
      expect(await listAll(harness, { ...query, status: "in_doubt" })).toEqual(untouched);
    }),
    { numRuns: 40 },
  );
});

test("the pages of the list hold each dispatch once, newest first", async () => {
  const harness = disposed(await openApp());
  const count = 2 * DISPATCHES_LISTED + 1;
  await harness.append(STREAMS.requests, ...Array.from({ length: count }, () => CLICK));
  await harness.append(STREAMS.delivery("chat"), ...Array.from({ length: count }, (_, at) => gaveUp(at + 1, "chat")));
  const listed = await listAll(harness, {});
  expect(listed.count).toBe(count);
  expect(listed.dispatches.map(({ source }) => source)).toEqual(Array.from({ length: count }, (_, at) => count - at));
});

test("a retry of another number of dispatches than expected is refused", async () => {
  const { asked, kinds, harness } = await openWithLetters();
  const named = { all: true, channel: "chat", expected: 2, until_position: 6 };
  await harness.append(STREAMS.requests, CLICK);
  await harness.append(STREAMS.delivery("chat"), gaveUp(7, "chat"));
  expect(await asked("retry", { ...named, until_position: 8 })).toBe("409 number-changed");
  expect(await kinds()).toHaveLength(2);
  expect(await asked("retry", named)).toEqual({ done: 2, ...NONE_LEFT });
  // The operator presses the button of the same, now outdated page a second time.
  expect(await asked("retry", named)).toBe("409 number-changed");
  expect((await kinds()).filter((kind) => kind.startsWith("DispatchRetry"))).toHaveLength(2);
});

const doubted = (source: number, channel: ChannelName): NewEvent =>
  outcomeOf("DispatchInDoubt", { source, channel, lane: "clicks", detail: "no answer in time", mode: "single" });

test("dispatches in doubt are settled as arrived or left, and nothing is sent", async () => {
  const harness = disposed(await openApp());
  await harness.append(STREAMS.requests, CLICK, CLICK, CLICK);
  await harness.append(STREAMS.delivery("chat"), doubted(1, "chat"));
  await harness.append(STREAMS.delivery("ads"), doubted(1, "ads"), doubted(2, "ads"), doubted(3, "ads"));
  const ids = (await Array.fromAsync(harness.store.read({ to: 3 }))).map((event) => event.id);
  const settle = async (body: object) =>
    (await (
      await post(harness.app, "/api/deliveries/settle", { why: "seen", ...body }, { token: TOKEN })
    ).json()) as object;
  const both = ids.slice(0, 2);
  const several = { event_id: ids[0], why: "several_channels" };
  expect(await settle({ event_ids: both, as: "arrived", dry_run: true })).toMatchObject({ done: 1 });
  expect(await settle({ event_ids: both, as: "arrived" })).toMatchObject({ done: 1, left: [several, several] });
  expect(await settle({ event_ids: both, as: "left", channel: "chat" })).toMatchObject({
    done: 1,
    left: [{ event_id: ids[1], why: "not_in_doubt" }],
  });
  expect(await settle({ all: true, as: "left", expected: 1 })).toMatchObject({ status: 409 });
  expect(await settle({ all: true, as: "left", expected: 2 })).toMatchObject({ done: 2, left: [] });
  expect(await settle({ all: true, as: "left" })).toMatchObject({ done: 0 });
  const events = await Array.fromAsync(harness.store.read({ types: ["DispatchSettled"] }));
  const about = ({ source, channel, as }: DataOf<"DispatchSettled">) => `${source} ${channel} ${as}`;
  expect(events.map(({ data }) => about(data as DataOf<"DispatchSettled">))).toEqual([
    "2 ads arrived",
    "1 chat left",
    "1 ads left",
    "3 ads left",
  ]);
  expect(await list(harness, { status: "in_doubt" })).toMatchObject({ count: 0 });
  const { chat, ads } = harness.projector.state("deliveries");
  expect([chat, ads].map(({ in_doubt, dispatched, lanes }) => [in_doubt, dispatched, lanes.direct.pending])).toEqual([
    [0, 0, 0],
    [0, 1, 0],
  ]);
});

test("one dispatch in doubt is retried once, recorded with may_double", async () => {
  const harness = disposed(await openApp());
  await harness.append(STREAMS.requests, CLICK, CLICK);
  await harness.append(STREAMS.delivery("chat"), doubted(1, "chat"));
  await harness.append(STREAMS.delivery("ads"), doubted(1, "ads"), doubted(2, "ads"));
  const [id = "", second = ""] = (await Array.fromAsync(harness.store.read({ to: 2 }))).map((event) => event.id);
  const retry = async (more: object, event = id) => {
    const body = { status: "in_doubt", event_ids: [event], accept_doubles: true, ...more };
    return (await (await post(harness.app, "/api/deliveries/retry", body, { token: TOKEN })).json()) as object;
  };
  expect(await list(harness, { status: "in_doubt" })).toMatchObject({ count: 3 });
  const several = { event_id: id, why: "several_channels" };
  expect(await retry({})).toMatchObject({
    done: 0,
    left: [
      { ...several, channel: "chat" },
      { ...several, channel: "ads" },
    ],
  });
  expect(await retry({ channel: "chat", dry_run: true })).toMatchObject({ done: 1 });
  expect(await retry({ channel: "chat" })).toMatchObject({ done: 1, left: [] });
  expect(await retry({ channel: "chat" })).toMatchObject({ done: 0, left: [{ event_id: id, why: "not_in_doubt" }] });
  expect(await retry({}, second)).toMatchObject({ done: 1 });
  const events = await Array.fromAsync(harness.store.read({ types: ["DispatchRetryRequested"] }));
  expect(events.map(({ data, meta }): unknown => [data, meta.caller])).toEqual([
    [{ event_id: id, source: 1, channel: "chat", may_double: true, in_doubt: true }, "tests"],
    [{ event_id: second, source: 2, channel: "ads", may_double: true, in_doubt: true }, "tests"],
  ]);
  const { chat, ads } = harness.projector.state("deliveries");
  expect([chat.in_doubt, ads.in_doubt, chat.dead, ads.dead]).toEqual([0, 1, 0, 0]);
  expect([chat.lanes.direct.pending, ads.lanes.direct.pending]).toEqual([1, 1]);
  // The retry's outcome is in doubt too. This is a new doubt, about another position.
  expect(events[0]?.position).toBe(6);
  const again = outcomeOf("DispatchInDoubt", { source: 6, channel: "chat", lane: "direct", detail: "again" });
  await harness.append(STREAMS.delivery("chat"), again);
  expect((await list(harness, { status: "in_doubt", channel: "chat" })).dispatches).toMatchObject([{ source: 1 }]);
  expect(await retry({ channel: "chat" })).toMatchObject({ done: 1 });
});

describe("answers about dispatches in doubt", () => {
  async function openInDoubt() {
    const harness = disposed(await openApp());
    await harness.append(STREAMS.requests, CLICK, CLICK, CLICK);
    const requests = [1, 2, 3].map((source) =>
      outcomeOf("DispatchInDoubt", { source, channel: "chat", lane: "clicks", detail: "no answer" }),
    );
    await harness.append(STREAMS.delivery("chat"), ...requests);
    return harness;
  }

  const body = { channel: "chat", arrived: ["1"], leave: ["2"], again: ["3"], why: "seen in the chat" };

  test("each is recorded as its own decision, with the reason and the caller", async () => {
    const harness = await openInDoubt();
    const answer = await post(harness.app, "/api/deliveries/decide", body, { token: TOKEN });
    const one = { done: 1, left: [] };
    expect(await answer.json()).toEqual({ arrived: one, leave: one, again: one });
    const events = await Array.fromAsync(harness.store.read({ from: 7 }));
    expect(events.map(({ type, data, meta }) => [type, data, meta.caller])).toMatchObject([
      ["DispatchSettled", { source: 1, as: "arrived", why: "seen in the chat" }, "tests"],
      ["DispatchSettled", { source: 2, as: "left", why: "seen in the chat" }, "tests"],
      ["DispatchRetryRequested", { source: 3, in_doubt: true, may_double: true }, "tests"],
    ]);
    expect(harness.projector.state("deliveries").chat).toMatchObject({ in_doubt: 0, dispatched: 1 });
  });

  test("an unknown one is left with a reason, and a repeat decides nothing", async () => {
    const harness = await openInDoubt();
    const decide = async (given: object): Promise<unknown> =>
      (await post(harness.app, "/api/deliveries/decide", given, { token: TOKEN })).json();
    await decide(body);
    expect(await decide({ channel: "chat", leave: ["1", UNKNOWN], why: "old" })).toMatchObject({
      leave: { done: 0, left: [{ why: "not_in_doubt" }, { event_id: UNKNOWN, why: "not_in_doubt" }] },
    });
    expect(await decide({ channel: "chat", why: "old" })).toMatchObject({
      type: "urn:reachlog:problem:nothing-chosen",
    });
  });
});
