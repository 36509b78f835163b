// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { PAGES as MENU } from "../../src/console/document.tsx";
import type { NewEvent } from "../../src/log/event-log.ts";
import { createApp, type App } from "../../src/http/app.ts";
import { textsAt } from "./open-console.ts";
import { ask, openApp, type AppHarness } from "../harness/in-process/app.ts";
import { outcomeOf } from "../harness/in-process/dispatch-outcome-events.ts";
import { addedOf, clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

/** Id of the run. It begins with the time of its start, as real ids do: the search for a run begins at that time. */
const RUN = `${Date.now()
  .toString(16)
  .padStart(12, "0")
  .replace(/(?<=^.{8})/, "-")}-7000-8000-000000000001`;

const PAGES = [
  "/runs",
  `/runs/${RUN}`,
  "/people/1",
  "/people/@bob",
  "/",
  "/people",
  "/people?status=open",
  "/links",
  "/links/go.example/a",
  "/deliveries",
  "/results",
  "/campaigns",
  "/campaigns/default",
  "/activity",
  "/activity/2",
  "/setup",
  // Once the recipient exists, this search finds two things: the recipient's id and a position.
  "/find?q=1",
];

let world: AppHarness;
/**
 * App under test. Its console needs no sign-in and so issues no form tokens: pages of the present then have no forms,
 * like pages of the past. So the test can compare both as text.
 */
let app: App;

beforeEach(async () => {
  world = await openApp({ tokens: false });
  app = createApp({ ...world.deps, sessions: { ...world.deps.sessions, formToken: () => undefined } });
});
afterEach(() => world[Symbol.asyncDispose]());

async function pageAt(path: string, status = 200): Promise<string> {
  const response = await ask(app, path);
  expect([path, response.status]).toEqual([path, status]);
  return response.text();
}

function asOf(path: string, moment: number | string): string {
  return `${path}${path.includes("?") ? "&" : "?"}as_of=${moment}`;
}

const person = (username: string): NewEvent => addedOf({ username });

function messaged(id: string, isSent: boolean): NewEvent[] {
  const of = { attempt_id: id, run_id: RUN, recipient: { id, username: `person_${id}` } };
  const attempt: NewEvent = {
    type: "DirectMessageAttempted",
    data: { ...of, text: "Hi", variant: "A", day: new Date().toISOString().slice(0, 10) },
  };
  if (isSent) return [attempt, { type: "DirectMessageSent", data: { ...of, message_id: id, settled_by: "answer" } }];
  const data = { ...of, reason: "rejected", detail: "", frees_quota: false, retry: false } as const;
  return [attempt, { type: "DirectMessageFailed", data }];
}

const click = (short_code: string): NewEvent => clickOf({ short_code, channels: ["chat"] });

function undelivered(type: "DispatchAbandoned" | "DispatchInDoubt", source: number): NewEvent {
  const end = type === "DispatchAbandoned" ? { refused: true } : {};
  return outcomeOf(type, { source, channel: "chat", lane: "clicks", detail: "no", ...end });
}

/** Events to append step by step. Each step changes a number on some page. */
const LIFE: readonly (readonly [stream: string, ...NewEvent[]])[] = [
  ["link-go.example/a", click("a")],
  ["outreach", person("ada"), person("bob")],
  ["outreach", { type: "RunStarted", data: { run_id: RUN, dry_run: false } }],
  ["outreach", ...messaged("1", true)],
  ["link-go.example/b", click("b"), click("b")],
  ["outreach", ...messaged("2", false)],
  [
    "delivery-chat",
    { type: "ChannelSuspended", data: { channel: "chat", network: "slack", detail: "410", credential: "hash" } },
  ],
  ["delivery-chat", undelivered("DispatchAbandoned", 1), undelivered("DispatchInDoubt", 8)],
  ["requests", { type: "DispatchDiscarded", data: { event_id: "e", source: 1, channel: "chat", why: "over" } }],
  ["log", { type: "LogVerified", data: { position: 1, hash: "h", checked: 1, result: "broken", fault: "altered" } }],
  ["outreach", { type: "RecipientSuppressed", data: { recipient: { username: "bob" }, reason: "by_hand" } }],
];

/**
 * Returns the status and content of a page, to compare two readings. The status differs too: a page does not exist
 * before the event that creates it.
 */
async function seenAt(path: string): Promise<string> {
  const response = await ask(app, path);
  const location = response.headers.get("location");
  if (location !== null) return `${response.status} ${location.replace(/\?as_of=\d+$/, "")}`;
  return `${response.status} ${mainOf(await response.text())}`;
}

/**
 * Returns the main part of a page, without what only pages of the past have: the `as_of` in links and forms, and the
 * name of the quota's day.
 */
function mainOf(page: string): string {
  const main = page.slice(page.indexOf("<main"), page.indexOf("</main>"));
  return main
    .replaceAll(/<input type="hidden" name="as_of"[^>]*>/g, "")
    .replaceAll(/Quota of \d+ \w+/g, "Today's quota")
    .replaceAll(/(?:[?]|&amp;)as_of=\d+/g, "")
    .replaceAll(/(href="[^"?]*)&amp;/g, "$1?");
}

test("each page as of a moment equals the page of then", async () => {
  const then: (readonly [position: number, path: string, main: string])[] = [];
  for (const [stream, ...newEvents] of LIFE) {
    await world.append(stream, ...newEvents);
    const { position } = world.projector;
    for (const path of PAGES) then.push([position, path, await seenAt(path)]);
    for (const path of ["/find?q=@bob", `/find?q=${RUN}`]) then.push([position, path, await seenAt(path)]);
  }
  const head = world.projector.position;
  let different = 0;
  for (const [position, path, main] of then) {
    // The page of event 2 now links to the next event. Read as of an earlier moment, it must not have that link.
    expect([position, path, await seenAt(asOf(path, position))]).toEqual([position, path, main]);
    expect(main).toMatch(/^(?:200|303|404) /);
    if (position < head && main !== (await seenAt(path))) different++;
  }
  expect(different).toBeGreaterThan(LIFE.length * 4);
  expect(MENU.filter(({ path }) => !PAGES.includes(path))).toEqual([]);
});

describe("pages as of an earlier moment", () => {
  beforeEach(async () => {
    for (const [stream, ...newEvents] of LIFE) await world.append(stream, ...newEvents);
  });

  test("keep the moment in all links except one to now and one to the events since", async () => {
    for (const path of [...PAGES, "/activity?type=LinkClicked", "/links?sort=link"]) {
      const page = await pageAt(asOf(path, 9));
      const isChoice = (link: string): boolean => link.includes("data-moment");
      const all = [...page.matchAll(/<a\b[^>]*?href="([^"]*)"[^>]*>/g)];
      const links = all.flatMap(([link, href = ""]) => (isChoice(link) ? [] : [href]));
      const choices = all.flatMap(([link, href = ""]) => (isChoice(link) ? [href] : []));
      const [operations = [], pages = []] = [true, false].map((isApi) =>
        links.filter((href) => href.startsWith("/") && /^\/(?:api|social)\//.test(href) === isApi),
      );
      expect(operations.filter((href) => href.includes("as_of"))).toEqual([]);
      expect(pages.length).toBeGreaterThan(5);
      for (const href of pages) expect(href).toMatch(/[?;]as_of=9(?:#since)?$/);
      expect(choices.filter((href) => href.startsWith("?") && !href.includes("as_of="))).toHaveLength(1);
      expect(choices.filter((href) => !href.startsWith("?"))).toEqual(path === "/" ? ["/activity?from=10"] : []);
      expect(pages.includes("/?as_of=9")).toBe(true);
      for (const [form = ""] of page.matchAll(/<form\b[^>]*method="get".*?<\/form>/gs)) {
        expect(form.match(/name="as_of"/g)).toHaveLength(1);
      }
    }
    const filtered = await pageAt(asOf("/people?status=open", 9));
    expect(filtered).toContain('href="?status=open"');
    expect(filtered).toContain('<input type="hidden" name="status" value="open"');
  });

  test("show the position, do not follow the log and have no forms that act", async () => {
    const { position } = world.projector;
    const [then, now] = await Promise.all(
      [`/?as_of=${position}`, "/"].map(async (path) => (await ask(world.app, path)).text()),
    );
    expect(then).toContain(`, at position ${position}<`);
    expect(then).toContain(`<body data-as-of="${position}">`);
    expect(then).not.toContain("form_token");
    expect(now).toContain("form_token");
    expect(now).toContain('type="range"');
    expect(now).not.toContain("data-as-of");
  });

  test("show on the overview how each figure changed since, and link to that elsewhere", async () => {
    const changes = (await textsAt(await pageAt(asOf("/", 3)), ".changes li")).map(({ text }) => text);
    expect(changes).toEqual([
      "Sent +1 (0 → 1)",
      "Skipped ±0 (0 → 0)",
      "Failed +1 (0 → 1)",
      "Clicks by people +2 (1 → 3)",
      "Dispatches ±0 (0 → 0)",
      "Recipients +2 (2 → 4)",
    ]);
    expect(await pageAt(asOf("/people", 3))).toContain('<a href="/?as_of=3#since">What changed since</a>');
    expect(await pageAt("/")).not.toContain("What changed since");
    expect(await pageAt(asOf("/", 3))).toMatch(/<h2[^>]*>Quota of \d+ \w+<\/h2>/);
  });

  test("have the same time bar as current pages, with moments from the log's start", async () => {
    const [first] = await Array.fromAsync(world.store.read({ limit: 1 }));
    for (const path of ["/", "/people", asOf("/links", 5)]) {
      const page = await pageAt(path);
      const choices = await textsAt(page, "#moment .presets > li > a");
      expect(choices.map(({ text }) => text.replace(/ (?:\d+ \w+, )?\d\d:\d\d$/, ""))).toContain("Before run 1");
      expect(choices[0]?.links).toEqual([]);
      expect(page).toContain('<a href="?as_of=3" data-moment');
      expect(page).toContain(`min="${Date.parse(first?.time ?? "")}"`);
    }
  });

  test("accept the same moments as --as-of, and contain no later event", async () => {
    const events = await Array.fromAsync(world.store.read());
    const first = events[0]!.time;
    // A moment includes all events of its millisecond.
    const { position } = events.findLast(({ time }) => time === first)!;
    expect(await pageAt(asOf("/", first))).toContain(`position ${position}</span>`);
    expect(await pageAt(asOf("/", "2001-01-01"))).toContain("before the first event");
    expect(await pageAt(asOf("/", "2999-01-01"))).toContain(`position ${world.projector.position}</span>`);
    await pageAt(asOf("/activity/6", 5), 404);
    await pageAt(asOf("/activity/5", 5));
  });

  test("with an invalid moment show the current page and the reason", async () => {
    expect(await pageAt(asOf("/people", "soon"), 400)).toContain("not &quot;soon&quot;");
    const beyond = await pageAt(asOf("/people", 99), 400);
    expect(beyond).toContain("it has no position 99");
    expect(beyond).toContain("@ada");
    expect(await pageAt("/people?as_of=")).not.toContain("data-as-of");
    expect(await pageAt("/people?as_of=nonsense", 400)).toContain('role="alert">A moment is a position');
  });

  test("show the quota's day in the time zone that applied then", async () => {
    const of = { attempt_id: "k", run_id: RUN, recipient: { id: "9", username: "ina" }, text: "Hi", variant: "A" };
    const timezone = "Pacific/Kiritimati";
    const day = Temporal.Now.plainDateISO(timezone).toString();
    await world.append("outreach", { type: "DirectMessageAttempted", data: { ...of, day, timezone } });
    const page = await pageAt(asOf("/", world.projector.position));
    const end = Temporal.PlainDate.from(day).add({ days: 1 }).toZonedDateTime(timezone).toInstant();
    expect(page).toContain(`Starts again at <time datetime="${end.toString({ fractionalSecondDigits: 3 })}"`);
  });

  test("reload if the states of the moment are not ready", async () => {
    await using late = await openApp({ tokens: false, past: { at: async () => undefined } });
    for (const [stream, ...newEvents] of LIFE) await late.append(stream, ...newEvents);
    const response = await ask(late.app, "/people?status=open&as_of=5");
    const { status, headers } = response;
    expect([status, headers.get("retry-after"), headers.get("refresh")]).toEqual([503, "2", "2"]);
    expect(await response.text()).toContain('<a href="?status=open&amp;as_of=5">Reload</a>');
  });
});
