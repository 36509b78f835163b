// On the memory harness.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { PAGES as MENU } from "../../src/console/document.tsx";
import type { NewEvent } from "../../src/log/event-log.ts";
import { createApp, type App } from "../../src/http/app.ts";
import { textsAt } from "./pages.ts";
import { ask, openApp, type AppHarness } from "../harness/memory/app.ts";
import { outcomeOf } from "../harness/memory/outcomes.ts";
import { addedOf, clickOf } from "../harness/memory/new-events.ts";

/** The id begins with a time, from which the search for a run starts. */
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
  "/activity",
  "/activity/2",
  "/setup",
  // Finds both a recipient's id and a position, once the recipient exists.
  "/find?q=1",
];

let world: AppHarness;
/** An app without form tokens, so that current pages have no forms either and can be compared. */
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

/** Each step changes a number on some page. */
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
 * The status and content of a page. The status counts too, because a page is unknown before the event that creates it.
 */
async function seenAt(path: string): Promise<string> {
  const response = await ask(app, path);
  const location = response.headers.get("location");
  if (location !== null) return `${response.status} ${location.replace(/\?as_of=\d+$/, "")}`;
  return `${response.status} ${mainOf(await response.text())}`;
}

/** The main part of a page, without the `as_of` in its links. */
function mainOf(page: string): string {
  const main = page.slice(page.indexOf("<main"), page.indexOf("</main>"));
  return main
    .replaceAll(/<input type="hidden" name="as_of"[^>]*>/g, "")
    .replaceAll(/(?:[?]|&amp;)as_of=\d+/g, "")
    .replaceAll(/(href="[^"?]*)&amp;/g, "$1?");
}

test("each page as of a moment is what it was then, to the letter", async () => {
  const then: (readonly [position: number, path: string, main: string])[] = [];
  for (const [stream, ...newEvents] of LIFE) {
    await world.append(stream, ...newEvents);
    const { position } = world.projector;
    for (const path of PAGES)
      if (path !== "/activity/2" || position > 2) then.push([position, path, await seenAt(path)]);
    for (const path of ["/find?q=@bob", `/find?q=${RUN}`]) then.push([position, path, await seenAt(path)]);
  }
  const head = world.projector.position;
  let different = 0;
  for (const [position, path, main] of then) {
    // The page of an event links to the next event once that exists.
    expect([position, path, await seenAt(asOf(path, position))]).toEqual([position, path, main]);
    expect(main).toMatch(/^(?:200|303|404) /);
    if (position < head && main !== (await seenAt(path))) different++;
  }
  expect(different).toBeGreaterThan(LIFE.length * 4);
  expect(MENU.filter(({ path }) => !PAGES.includes(path))).toEqual([]);
});

describe("as of an earlier moment", () => {
  beforeEach(async () => {
    for (const [stream, ...newEvents] of LIFE) await world.append(stream, ...newEvents);
  });

  test("all that leads to another page keeps the moment; only one link leads back to now, and one to what came since", async () => {
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
      for (const href of pages) expect(href).toMatch(/[?;]as_of=9$/);
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

  test("a page says so, does not follow the log, and offers nothing to be done", async () => {
    const { position } = world.projector;
    const [then, now] = await Promise.all(
      [`/?as_of=${position}`, "/"].map(async (path) => (await ask(world.app, path)).text()),
    );
    expect(then).toContain(`<b>As of position ${position}</b>`);
    expect(then).toContain(`<body data-as-of="${position}">`);
    expect(then).not.toContain("form_token");
    expect(now).toContain("form_token");
    expect(now).toContain('type="range"');
    expect(now).not.toContain("data-as-of");
  });

  test("the overview says what changed since, figure by figure; the other pages lead there", async () => {
    const changes = (await textsAt(await pageAt(asOf("/", 3)), ".changes li")).map(({ text }) => text);
    expect(changes).toEqual([
      "Sent +1 (0 → 1)",
      "Skipped ±0 (0 → 0)",
      "Failed +1 (0 → 1)",
      "Clicks by people +2 (1 → 3)",
      "Dispatches ±0 (0 → 0)",
      "Recipients +2 (2 → 4)",
    ]);
    expect(await pageAt(asOf("/people", 3))).toContain('<a href="/?as_of=3">What changed since</a>');
    expect(await pageAt("/")).not.toContain("What changed since");
  });

  test("the bar leads to known moments and spans the life of the log, of now and of then alike", async () => {
    const [first] = await Array.fromAsync(world.store.read({ limit: 1 }));
    for (const path of ["/", "/people", asOf("/links", 5)]) {
      const page = await pageAt(path);
      const choices = await textsAt(page, "#moment .moments > a");
      expect(choices.map(({ text }) => text)).toEqual([
        "An hour ago",
        "Yesterday 18:00",
        "A week ago",
        "Before the last run",
      ]);
      const moments = [...page.matchAll(/<a href="\?as_of=([^"]+)" data-moment="true">/g)].map(([, at = ""]) => at);
      expect(moments[1]).toBe(`${Temporal.Now.plainDateISO("UTC").subtract({ days: 1 }).toString()}T18%3A00`);
      expect(moments[3]).toBe("3");
      expect(page).toContain(`min="${Date.parse(first?.time ?? "")}"`);
    }
  });

  test("a moment is whatever --as-of takes, and an event of later is not there", async () => {
    const [first] = await Array.fromAsync(world.store.read({ limit: 1 }));
    expect(await pageAt(asOf("/", first?.time ?? ""))).toContain("<b>As of position 1</b>");
    expect(await pageAt(asOf("/", "2001-01-01"))).toContain("before the first event");
    expect(await pageAt(asOf("/", "2999-01-01"))).toContain(`<b>As of position ${world.projector.position}</b>`);
    await pageAt(asOf("/activity/6", 5), 404);
    await pageAt(asOf("/activity/5", 5));
  });

  test("what is no moment is answered with the page of now, which says why", async () => {
    expect(await pageAt(asOf("/people", "soon"), 400)).toContain("not &quot;soon&quot;");
    const beyond = await pageAt(asOf("/people", 99), 400);
    expect(beyond).toContain("it has no position 99");
    expect(beyond).toContain("@ada");
    expect(await pageAt("/people?as_of=")).not.toContain("data-as-of");
  });

  test("the quota's day is one of the time zone that counted then", async () => {
    const of = { attempt_id: "k", run_id: RUN, recipient: { id: "9", username: "ina" }, text: "Hi", variant: "A" };
    const timezone = "Pacific/Kiritimati";
    const day = Temporal.Now.plainDateISO(timezone).toString();
    await world.append("outreach", { type: "DirectMessageAttempted", data: { ...of, day, timezone } });
    const page = await pageAt(asOf("/", world.projector.position));
    const end = Temporal.PlainDate.from(day).add({ days: 1 }).toZonedDateTime(timezone).toInstant();
    expect(page).toContain(`Starts again at <time datetime="${end.toString({ fractionalSecondDigits: 3 })}"`);
  });

  test("a moment that is not ready is a page that says so, and asks again", async () => {
    await using late = await openApp({ tokens: false, past: { at: async () => undefined } });
    for (const [stream, ...newEvents] of LIFE) await late.append(stream, ...newEvents);
    const response = await ask(late.app, "/people?status=open&as_of=5");
    const { status, headers } = response;
    expect([status, headers.get("retry-after"), headers.get("refresh")]).toEqual([503, "2", "2"]);
    expect(await response.text()).toContain('<a href="?status=open&amp;as_of=5">Reload</a>');
  });
});
