// On the memory harness.
import { describe, expect, test } from "bun:test";
import { makeEvent } from "../../../events/catalog.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { makeId } from "../../../src/platform/clock.ts";
import { ask } from "../../harness/memory/app.ts";
import { addedOf } from "../../harness/memory/new-events.ts";
import { click, openConsole, pageAt, person, rowsOf, textsAt } from "../pages.ts";

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
      expect([path, ...new Set(named.map((text) => text.replace(/^run /i, "")))]).toEqual([path, "2"]);
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
  expect(await pageAt(harness, `/runs/${makeId()}`, 404)).toContain("The log has no run with this id.");
  expect((await ask(harness.app, "/runs/x")).status).toBe(404);
});

describe("the list of runs", () => {
  const rules = { daily_limit: 100, timezone: "UTC", require_consent: true, template: "t1" };

  test("has when each began, who started it, with which message, what it did and why it ended", async () => {
    const harness = await openConsole();
    const [first, dry, dead, current] = [makeId(), makeId(), makeId(), makeId()];
    expect(await pageAt(harness, "/runs")).toContain("There was none yet.");
    await harness.append(
      "outreach",
      { type: "RunStarted", data: { run_id: first, dry_run: false, rules: { ...rules, template_name: "Autumn <b>" } } },
      { type: "RunFinished", data: { run_id: first, reason: "stopped", ...counts, sent: 1_234, failed: 2 } },
      { type: "RunStarted", data: { run_id: dry, dry_run: true, rules } },
      { type: "DryRunFinished", data: { run_id: dry, reason: "completed", would_send: 9, would_skip: 4 } },
      started(dead),
      { type: "RunAbandoned", data: { run_id: dead, ...counts } },
    );
    const begun = makeEvent("RunStarted", makeId(), { run_id: current, dry_run: false }, { caller: "anonymous" });
    await harness.store.append("outreach", [begun]);
    await harness.append("outreach", skipped(current, "ada"));
    const page = await pageAt(harness, "/runs");
    expect((await rowsOf(page)).map((row) => row.replace(/\d{4}-\S+ \S+ UTC/, "TIME"))).toEqual([
      "Run 4 | TIME | API without token | – | 0 | 1 | 0 | In progress",
      "Run 3 | TIME | – | – | 0 | 0 | 0 | Broke off its process died",
      "Dry run 2 | TIME | – | t1 | 9 | 4 | 0 | Done no recipient is left",
      "Run 1 | TIME | – | Autumn &lt;b> | 1,234 | 0 | 2 | Stopped",
    ]);
    expect((await textsAt(page, "tbody th"))[0]?.links).toEqual([`/runs/${current}`]);
    expect(await pageAt(harness, `/runs/${first}`)).toContain('<a href="/runs">All runs</a>');
    expect(await pageAt(harness, "/")).toContain('<a href="/runs">All runs</a>');
  });

  test("is sorted by its columns, and goes on behind the last run of a page, as of any moment", async () => {
    const harness = await openConsole();
    const ids = Array.from({ length: 52 }, () => makeId());
    const all = ids.flatMap((run_id, at): NewEvent[] => [
      started(run_id),
      { type: "RunFinished", data: { run_id, reason: "completed", ...counts, sent: at % 7 } },
    ]);
    await harness.append("outreach", ...all);
    const runsAt = async (path: string) => {
      const page = await pageAt(harness, path);
      const more = /<a href="([^"]+)">More runs</.exec(page)?.[1]?.replaceAll("&amp;", "&");
      return { names: (await textsAt(page, "tbody th")).map(({ text }) => text), more };
    };
    const first = await runsAt("/runs");
    expect([first.names.length, first.names[0], first.names.at(-1)]).toEqual([50, "Run 52", "Run 3"]);
    expect(await runsAt(first.more ?? "")).toEqual({ names: ["Run 2", "Run 1"], more: undefined });
    const sorted = await runsAt("/runs?sort=sent&order=descending");
    expect(sorted.names.slice(0, 2)).toEqual(["Run 7", "Run 14"]);
    expect((await runsAt("/runs?as_of=4")).names).toEqual(["Run 2", "Run 1"]);
  });
});
