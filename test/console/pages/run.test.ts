// On the memory harness.
import { expect, test } from "bun:test";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { makeId } from "../../../src/platform/clock.ts";
import { ask } from "../../harness/memory/app.ts";
import { addedOf } from "../../harness/memory/new-events.ts";
import { click, openConsole, pageAt, person, textsAt } from "../pages.ts";

const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };

const started = (run_id: string): NewEvent => ({ type: "RunStarted", data: { run_id, dry_run: false } });
const finished = (run_id: string): NewEvent => ({
  type: "RunFinished",
  data: { run_id, reason: "completed", ...counts },
});
const skipped = (run_id: string, username: string): NewEvent => ({
  type: "DirectMessageSkipped",
  data: { run_id, recipient: { username }, reason: "no_consent" },
});

test("a run is its events from its start to its end, and nothing of others", async () => {
  const harness = await openConsole();
  const [before, run, after] = [makeId(), makeId(), makeId()];
  await harness.append("outreach", started(before), finished(before), started(run), skipped(run, "ada"), person("bob"));
  await harness.append("link-go.example/a", click("a"));
  await harness.append("outreach", finished(run), started(after), skipped(after, "ada"));
  const page = await pageAt(harness, `/runs/${run}`);
  const [start, skip, end, ...others] = (await textsAt(page, ".sentence")).map(({ text }) => text);
  expect(start).toBe("Run 2 started");
  expect(skip).toContain(" skipped @ada");
  expect(end).toContain(" ended, completed");
  expect(others).toEqual([]);
  expect(page).not.toContain("Later events");
});

test("a run is called by its number wherever it is named, also at an earlier moment", async () => {
  const harness = await openConsole();
  const run = makeId();
  const ada = { id: "1001", username: "ada" };
  const message = { attempt_id: "a1", run_id: run, recipient: ada };
  await harness.append("outreach", started(makeId()), addedOf(ada, { basis: "opt_in" }), started(run));
  await harness.append(
    "outreach",
    {
      type: "DirectMessageAttempted",
      data: { ...message, text: "Hi", variant: "A", day: "2026-11-20", template: "t" },
    },
    { type: "DirectMessageSent", data: { ...message, message_id: "m", settled_by: "answer" } },
    finished(run),
    started(makeId()),
  );
  const linksAt = async (path: string) => {
    const page = await pageAt(harness, path);
    return [...page.matchAll(new RegExp(`<a href="/runs/${run}[^>]*>(.*?)</a>`, "g"))].map(([, text = ""]) =>
      text.replaceAll(/<[^>]+>/g, ""),
    );
  };
  for (const moment of ["", "as_of=6"]) {
    for (const path of ["/", "/people/1001", "/activity?show=everything", "/results?by=run"]) {
      const named = await linksAt(`${path}${path.includes("?") ? "&" : "?"}${moment}`);
      expect([path, ...new Set(named.map((text) => text.replace("run ", "")))]).toEqual([path, "2"]);
    }
    const [title] = await textsAt(await pageAt(harness, `/runs/${run}?${moment}`), "h1");
    expect(title?.text).toMatch(/^Run 2, \d{4}-\d\d-\d\d /);
  }
});

test("a long one goes on on the next page, up to its end", async () => {
  const harness = await openConsole();
  const run = makeId();
  const people = Array.from({ length: 398 }, (_, number) => skipped(run, `person_${number}`));
  await harness.append("outreach", started(run), ...people, finished(run));
  const path = `/runs/${run}`;
  const first = await pageAt(harness, path);
  expect(await textsAt(first, ".sentence")).toHaveLength(200);
  expect(first).toContain(`<a href="${path}?from=201">Later events</a>`);
  expect(first.length).toBeLessThan(200_000);
  const last = await pageAt(harness, `${path}?from=201`);
  expect(await textsAt(last, ".sentence")).toHaveLength(200);
  expect(last).not.toContain("Later events");
  expect(last).toContain(`<a href="${path}">Its beginning</a>`);
});

test("of an unknown one the page says so, and what is no id has no page", async () => {
  const harness = await openConsole();
  await harness.append("outreach", started(makeId()));
  expect(await pageAt(harness, `/runs/${makeId()}`, 404)).toContain("The log knows no run with this id.");
  expect((await ask(harness.app, "/runs/x")).status).toBe(404);
});
