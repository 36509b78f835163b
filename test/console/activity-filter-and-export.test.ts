// These tests run parts of the service inside the test process.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createApp } from "../../src/http/app.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { EXPORT_FORMATS } from "../../src/log/export-formats.ts";
import { toStored, type ShownEvent } from "../../src/log/export-formats/write-export-text.ts";
import { ask, openApp, post, problemIn, TOKEN, type AppHarness } from "../harness/in-process/app.ts";
import { addedOf, clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const RUN = "01a1fd59-3b3a-7515-964c-67ff53c10ed1";
const OTHER_RUN = "01a1fd59-3b3b-7515-964c-67ff53c10ed1";

const person = (username: string, id?: string): NewEvent => addedOf(id === undefined ? { username } : { id, username });

const click = (short_code: string): NewEvent => clickOf({ short_code, ip: "203.0.113.7" });

const started = (run_id: string): NewEvent => ({ type: "RunStarted", data: { run_id, dry_run: false } });
const skipped = (run_id: string, username: string): NewEvent => ({
  type: "DirectMessageSkipped",
  data: { run_id, recipient: { username }, reason: "suppressed" },
});
const paused = (run_id: string): NewEvent => ({
  type: "RunPaused",
  data: { run_id, reason: "rate_limited", until: "2026-03-01T08:00:00.000Z" },
});
const abandoned = (run_id: string): NewEvent => ({
  type: "RunAbandoned",
  data: { run_id, sent: 0, skipped: 2, failed: 0, in_doubt: 0 },
});

let harness: AppHarness;
let times: readonly string[];

/**
 * Appends the log that the tests filter. Positions: 1 to 3 recipients, 4 to 6 clicks, 7 to 11 a run, 12 and 13 a run in
 * progress, 14 a message.
 */
beforeAll(async () => {
  harness = await openApp({ tokens: false });
  await harness.append("outreach", person("ada"), person("bob"), person("cyd", "77"));
  await harness.append("link-go.example/a", click("a"));
  await harness.append("link-go.example/b/c", click("b/c"));
  await harness.append("link-go.example/a", click("a"));
  await harness.append("outreach", started(RUN), skipped(RUN, "ada"), paused(RUN), skipped(RUN, "bob"), abandoned(RUN));
  await harness.append("outreach", started(OTHER_RUN), skipped(OTHER_RUN, "ada"));
  await harness.append("requests", { type: "MessageRequested", data: { text: "hello" } });
  times = (await Array.fromAsync(harness.store.read())).map(({ time }) => time);
});

afterAll(() => harness[Symbol.asyncDispose]());

async function shown(query: string): Promise<readonly number[]> {
  const page = await (await ask(harness.app, `/activity?show=everything&${query}`)).text();
  const list = page.slice(page.indexOf('<ol class="lines">'), page.indexOf("Export all matches"));
  return [...list.matchAll(/<span class="t"><a href="\/activity\/(\d+)">/g)].map(([, position]) => Number(position));
}

async function exported(query: string): Promise<readonly number[]> {
  const answer = await ask(harness.app, `/api/audit/export?${query}`);
  expect(answer.status).toBe(200);
  const lines = (await answer.text()).split("\n").filter((line) => line !== "");
  return lines.map((line) => (JSON.parse(line) as ShownEvent).position);
}

const cases: readonly (readonly [string, readonly number[]])[] = [
  ["", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]],
  ["type=RunStarted", [7, 12]],
  ["type=RunStarted&type=MessageRequested", [7, 12, 14]],
  ["type=&stream=requests", [14]],
  ["stream=outreach&type=RecipientAdded", [1, 2, 3]],
  ["stream=nothing", []],
  ["link=go.example/a", [4, 6]],
  ["link=go.example/b/c", [5]],
  ["link=go.example/a&stream=outreach", []],
  ["link=go.example/a&from=5", [6]],
  ["recipient=ada", [1, 8, 13]],
  ["recipient=%40ada", [1, 8, 13]],
  ["recipient=ada&type=DirectMessageSkipped", [8, 13]],
  [`recipient=ada&run=${RUN}`, [8]],
  ["recipient=ada&stream=requests", []],
  ["recipient=ada&to=7", [1]],
  ["recipient=77", [3]],
  ["recipient=cyd", [3]],
  ["recipient=not_in_log", []],
  [`run=${RUN}`, [7, 8, 9, 10, 11]],
  [`run=${RUN.toUpperCase()}&type=DirectMessageSkipped`, [8, 10]],
  [`run=${OTHER_RUN}`, [12, 13]],
  [`run=${OTHER_RUN}&stream=requests`, []],
  ["run=01a1fd59-3b3c-7515-964c-67ff53c10ed1", []],
  ["from=12", [12, 13, 14]],
  ["to=2", [1, 2]],
  ["from=3&to=5", [3, 4, 5]],
  ["from=5&to=3", []],
  ["to=99", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]],
  ["from=2000-01-01&to=2001-01-01", []],
  ["from=2000-01-01&to=2100-01-01", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]],
];

test.each(cases)(
  "%j selects the same events on the page, newest first, and in the export, oldest first",
  async (query, positions) => {
    expect(await shown(query)).toEqual(positions.toReversed());
    expect(await exported(query)).toEqual(positions);
  },
);

test("from and to accept a time and include the events at that time", async () => {
  const at = times[5] ?? "";
  const wanted = (isWithin: (time: string) => boolean) =>
    times.flatMap((time, index) => (isWithin(time) ? [index + 1] : []));
  expect(await exported(`from=${at}`)).toEqual(wanted((time) => time >= at));
  expect(await exported(`to=${at}`)).toEqual(wanted((time) => time <= at));
});

test("the next page continues after the last event, under the same filter", async () => {
  await using many = await openApp({ tokens: false });
  await many.append(
    "requests",
    ...Array.from({ length: 205 }, (): NewEvent => ({ type: "MessageRequested", data: { text: "x" } })),
  );
  await many.append("requests", { type: "NotificationRequested", data: { message: "m", service: "s", level: "info" } });
  const seen: number[] = [];
  let path: string | undefined = "/activity?stream=requests&type=MessageRequested";
  while (path !== undefined) {
    const page: string = await (await ask(many.app, path)).text();
    const positions = [...page.matchAll(/<span class="t"><a href="\/activity\/(\d+)">/g)].map(([, at]) => Number(at));
    expect(positions.length).toBeLessThanOrEqual(100);
    seen.push(...positions);
    path = /href="([^"]*before=[^"]*)">Older events/.exec(page)?.[1]?.replaceAll("&amp;", "&");
  }
  expect(seen).toEqual(Array.from({ length: 205 }, (_, index) => 205 - index));
});

test("one page scans a bounded part of a stream; a rare type is found directly", async () => {
  await using long = await openApp({ tokens: false });
  const message: NewEvent = { type: "MessageRequested", data: { text: "x" } };
  await long.append("requests", message, { type: "ChannelTestRequested", data: { channels: [] } });
  for (let round = 0; round < 2; round++) await long.append("elsewhere", ...Array.from({ length: 501 }, () => message));
  const other: NewEvent = { type: "NotificationRequested", data: { message: "m", service: "s", level: "info" } };
  for (let round = 0; round < 10; round++) await long.append("requests", ...Array.from({ length: 500 }, () => other));
  const page = await (await ask(long.app, "/activity?stream=requests&type=MessageRequested")).text();
  expect(page).toContain("None among those looked at.");
  const older = /href="([^"]*)">Older events/.exec(page)?.[1]?.replaceAll("&amp;", "&") ?? "";
  expect(await (await ask(long.app, older)).text()).toContain('<a href="/activity/1">');
  const rare = await (await ask(long.app, "/activity?stream=requests&type=ChannelTestRequested")).text();
  expect(rare).toContain('<span class="t"><a href="/activity/2">');
  expect(await (await ask(long.app, "/activity?stream=elsewhere&type=ChannelTestRequested")).text()).toContain(
    "No events.",
  );
});

test("an old run is found without a scan of later events", async () => {
  await using long = await openApp({ tokens: false });
  await long.append("outreach", started(RUN), abandoned(RUN));
  for (let round = 0; round < 11; round++) {
    await long.append("outreach", ...Array.from({ length: 500 }, (_, index) => person(`person_${round}_${index}`)));
  }
  const page = await (await ask(long.app, `/activity?run=${RUN}`)).text();
  for (const position of [1, 2]) expect(page).toContain(`<span class="t"><a href="/activity/${position}">`);
  expect(page).not.toContain("Older events");
});

test.each([
  ["type=Nonsense", "there is no type of event called"],
  ["link=nowhere", "a link is DOMAIN/SHORT_CODE"],
  ["run=1", "a run has an id"],
  ["from=yesterday", "a moment is a position"],
  ["to=2026-02-31", "there is no such time"],
])("%s is invalid: the page shows the reason, and the export is refused", async (query, why) => {
  expect(await (await ask(harness.app, `/activity?${query}`)).text()).toContain(why);
  expect(await problemIn(await ask(harness.app, `/api/audit/export?${query}`))).toBe("422 invalid-request");
});

describe("the export", () => {
  test("contains the stored events completely, and decrypted", async () => {
    const text = await (await ask(harness.app, "/api/audit/export?stream=link-go.example/a")).text();
    const events = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as ShownEvent);
    expect(events[0]).toMatchObject({ data: { ip: "203.0.113.7" } });
    expect(events[0]?.stored).toBeDefined();
    const stored = await Array.fromAsync(harness.store.readStored({ stream: "link-go.example/a" }));
    expect(events.map(toStored)).toEqual(stored);
  });

  test.each([
    ["csv", "text/csv; charset=utf-8", "reachlog-events.csv", /(?<=^")\d+/gm],
    ["cloudevents", "application/x-ndjson", "reachlog-events.cloudevents.jsonl", /(?<="sequence":")\d+/g],
  ] as const)("has the media type, file name and head of %s", async (format, type, name, position) => {
    const answer = await ask(harness.app, `/api/audit/export?format=${format}&to=3`);
    expect(answer.headers.get("content-type")).toBe(type);
    expect(answer.headers.get("content-disposition")).toBe(`attachment; filename="${name}"`);
    // Decodes the bytes here, because `Response.text()` would drop the byte order mark.
    const text = Buffer.from(await answer.arrayBuffer()).toString("utf8");
    expect(text).toStartWith(EXPORT_FORMATS[format].head);
    expect(text.match(position)).toEqual(["1", "2", "3"]);
  });

  test("needs a token or a session, and reads nothing for a HEAD", async () => {
    await using guarded = await openApp();
    await guarded.append("outreach", person("ada"));
    const path = "/api/audit/export";
    expect(await problemIn(await ask(guarded.app, path))).toBe("401 unauthorized");
    expect(await (await ask(guarded.app, path, { token: TOKEN })).text()).toContain("ada");
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const signedIn = await post(guarded.app, "/session", `token=${TOKEN}`, { headers });
    const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
    expect(await (await ask(guarded.app, path, { headers: { cookie } })).text()).toContain("ada");
    expect(await (await ask(guarded.app, path, { method: "HEAD", token: TOKEN })).text()).toBe("");
    expect(guarded.deps.load.streams).toBe(0);
    expect(await problemIn(await ask(guarded.app, `${path}?format=xml`, { token: TOKEN }))).toBe("422 invalid-request");
  });

  test("follows the reader's pace, and ends if the reader leaves or the service stops", async () => {
    await using large = await openApp({ tokens: false });
    const text = "x".repeat(4_000);
    for (let round = 0; round < 10; round++) {
      await large.append(
        "requests",
        ...Array.from({ length: 100 }, (): NewEvent => ({ type: "MessageRequested", data: { text } })),
      );
    }
    const answer = await ask(large.app, "/api/audit/export");
    const reader = answer.body?.getReader();
    const first = await reader?.read();
    expect(first?.value?.length ?? 0).toBeLessThan(200_000);
    expect(large.deps.load.streams).toBe(1);
    await reader?.cancel();
    expect(large.deps.load.streams).toBe(0);
    const stop = new AbortController();
    const stopped = createApp({ ...large.deps, stopping: stop.signal });
    const cut = (await ask(stopped, "/api/audit/export")).body?.getReader();
    await cut?.read();
    stop.abort();
    const rest = async (): Promise<void> => {
      while ((await cut?.read())?.done === false);
    };
    expect(
      await rest().then(
        () => "whole",
        () => "cut off",
      ),
    ).toBe("cut off");
    expect(large.deps.load.streams).toBe(0);
    expect(large.logged).toEqual([]);
  });
});
