// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { type NewEvent, eventAt } from "../../../src/log/event-log.ts";
import { makeEvent } from "../../../events/event-types-and-codec.ts";
import { makeId } from "../../../src/platform/clock-ids-and-timers.ts";
import { ask, type AppHarness } from "../../harness/in-process/app.ts";
import { addedOf } from "../../harness/in-process/make-recipient-and-click-events.ts";
import { outcomeOf } from "../../harness/in-process/dispatch-outcome-events.ts";
import { click, openConsole, pageAt, person, textsAt } from "../open-console.ts";

const DETAIL = { lane: "clicks", low_watermark: 1 } as const;

/** Event of a click that two channels have to deliver, ads and chat. */
function dispatched(code: string): NewEvent {
  const { data } = click(code) as NewEvent<"LinkClicked">;
  return { type: "LinkClicked", data: { ...data, channels: ["ads", "chat"] } };
}

const sentencesOf = async (page: string) =>
  (await textsAt(page, 'section[aria-labelledby="outcomes"] .sentence')).map(({ text }) => text);

describe("the page of activity", () => {
  test("shows the newest events first, by type and stream, page by page", async () => {
    const harness = await openConsole();
    await harness.append("link-go.example/a", ...Array.from({ length: 101 }, () => click("a")));
    await harness.append("outreach", person("ada"));
    const first = await pageAt(harness, "/activity?show=everything");
    const positions = (page: string) =>
      [...page.matchAll(/<span class="t"><a href="\/activity\/(\d+)"/g)].map(([, at]) => Number(at));
    expect(positions(first)).toEqual(Array.from({ length: 100 }, (_, index) => 102 - index));
    const older = /href="([^"]*before=[^"]*)">Older events/.exec(first)?.[1]?.replaceAll("&amp;", "&") ?? "";
    expect(positions(await pageAt(harness, older))).toEqual([2, 1]);
    expect(positions(await pageAt(harness, "/activity?type=RecipientAdded"))).toEqual([102]);
    expect(positions(await pageAt(harness, "/activity?stream=outreach"))).toEqual([102]);
    expect(positions(await pageAt(harness, "/activity?stream=unknown"))).toEqual([]);
  });

  test("links to each event with its hash, the hash before it and its proof", async () => {
    const harness = await openConsole();
    await harness.append("outreach", person("ada"), person("bob"));
    const page = await pageAt(harness, "/activity/2");
    expect(page).toContain((await harness.store.hashAt(2)) ?? "none");
    expect(page).toContain((await harness.store.hashAt(1)) ?? "none");
    expect(page).toContain("&quot;bob&quot;");
    expect((await ask(harness.app, "/activity/3")).status).toBe(404);
    expect(page).toContain('href="/api/audit/proof/2"');
  });
});

const RUN = "0193a000-0000-7000-8000-0000000000aa";
const ADA = { id: "1001", username: "ada" };

/** Events for the filter's tabs: about two for each tab, and one (`TokenUsed`) that only the tab `everything` shows. */
const MIXED: readonly NewEvent[] = [
  person("ada"),
  { type: "RunStarted", data: { run_id: RUN, dry_run: false } },
  { type: "DirectMessageSkipped", data: { run_id: RUN, recipient: ADA, reason: "suppressed" } },
  { type: "RunAbandoned", data: { run_id: RUN, sent: 0, skipped: 1, failed: 0, in_doubt: 0 } },
  click("a"),
  click("b", true),
  { type: "MessageRequested", data: { text: "hello" } },
  outcomeOf("DispatchSucceeded", { ...DETAIL, channel: "ads", source: 5, latency_ms: 3 }),
  outcomeOf("DispatchAbandoned", { ...DETAIL, channel: "ads", source: 5, detail: "gone", refused: true }),
  { type: "TokenUsed", data: { name: "ops", token_id: "b".repeat(12), day: "2026-11-20" } },
  { type: "RecipientSuppressed", data: { recipient: ADA, reason: "by_hand" } },
];

/** Tab of the page -> positions of the events in `MIXED` that it shows. */
const TABS = {
  news: [1, 2, 3, 4, 5, 6, 7, 9, 11],
  everything: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
  messages: [1, 2, 3, 4, 11],
  clicks: [5, 6],
  deliveries: [7, 8, 9],
  problems: [4, 9, 11],
} as const;

describe("the filter of the activity", () => {
  async function openMixed() {
    const harness = await openConsole();
    await harness.append("elsewhere", ...MIXED);
    const seenAt = async (path: string) => {
      const page = await pageAt(harness, path);
      const hrefs = (await textsAt(page, ".line .t")).flatMap(({ links }) => links);
      const exported = /href="([^"]*)"[^>]*>JSON Lines/.exec(page)?.[1]?.replaceAll("&amp;", "&") ?? "";
      const lines = (await (await ask(harness.app, exported)).text()).trim().split("\n");
      return {
        page,
        shown: hrefs.map((href) => Number(href.split("/").at(-1))).toReversed(),
        exported: lines.flatMap((line) => (line === "" ? [] : [(JSON.parse(line) as { position: number }).position])),
      };
    };
    return { harness, seenAt };
  }

  test.each(Object.entries(TABS))("shows and exports exactly the types of the tab %s", async (tab, positions) => {
    const { seenAt } = await openMixed();
    const { page, shown, exported } = await seenAt(`/activity?show=${tab}`);
    // The tab of news shows lines that each sum up several events, so it shows no list of positions.
    if (tab !== "news") expect(shown).toEqual([...positions]);
    expect(exported).toEqual([...positions]);
    const tabs = await textsAt(page, ".tabs li");
    expect(tabs.map(({ links }) => links[0])).toEqual(Object.keys(TABS).map((name) => `/activity?show=${name}`));
    const [current] = await textsAt(page, '.tabs a[aria-current="true"]');
    expect(current?.text.toLowerCase()).toBe(tab);
  });

  test("shows the news by default, and all matches once a filter is set", async () => {
    const { harness, seenAt } = await openMixed();
    expect((await textsAt(await pageAt(harness, "/activity"), "summary .sentence")).map(({ text }) => text)).toEqual([
      "Run 1 was cut off by a restart: 0 sent, 1 skipped",
      "Ads did not take 1 dispatch: gone",
      "1 click by people on 2 links · 1 by bots",
    ]);
    expect((await seenAt("/activity?stream=elsewhere")).shown).toEqual([...TABS.everything]);
    expect((await seenAt("/activity?show=clicks&from=6")).shown).toEqual([6]);
  });

  test("includes, excludes and drops a type by its chip, also for the export", async () => {
    const { harness, seenAt } = await openMixed();
    const chipsOf = async (path: string) =>
      (await textsAt(await pageAt(harness, path), ".chips li")).map(({ text, links }) => [
        text,
        ...links.map((link) => link.replaceAll("&amp;", "&")),
      ]);
    const chosen = "/activity?type=LinkClicked&type=RunStarted&not=TokenUsed&from=2";
    expect(await seenAt(chosen)).toMatchObject({ shown: [2, 5, 6], exported: [2, 5, 6] });
    const [[text, isNot = "", removed = ""] = [], second] = await chipsOf(chosen);
    expect([text, second?.[0]]).toEqual(["Type is Link clicked ", "Type is Run started "]);
    expect(await seenAt(removed)).toMatchObject({ shown: [2], exported: [2] });
    // Turning one type of the filter into "is not" does not affect the other chosen type.
    expect(await seenAt(isNot)).toMatchObject({ shown: [2], exported: [2] });
    expect((await chipsOf(isNot)).map(([words]) => words)).toEqual([
      "Type is Run started ",
      "Type is not Token used ",
      "Type is not Link clicked ",
    ]);

    const excluded = "/activity?not=LinkClicked&not=TokenUsed&show=everything";
    const rest = TABS.everything.filter((position) => ![5, 6, 10].includes(position));
    expect(await seenAt(excluded)).toMatchObject({ shown: rest, exported: rest });
    const [[words, is = "", letGo = ""] = []] = await chipsOf(excluded);
    expect(words).toBe("Type is not Link clicked ");
    expect((await seenAt(is)).shown).toEqual([5, 6]);
    expect((await seenAt(letGo)).shown).toEqual(TABS.everything.filter((position) => position !== 10));
    expect((await chipsOf(letGo)).map(([left]) => left)).toEqual(["Type is not Token used "]);
  });

  test("shows nothing and no export if a type is both included and excluded", async () => {
    const { harness } = await openMixed();
    const page = await pageAt(harness, "/activity?type=LinkClicked&not=LinkClicked");
    expect(await textsAt(page, ".line .t")).toEqual([]);
    expect(page).not.toContain("/api/audit/export");
    const chips = await textsAt(page, ".chips li");
    expect(chips.map(({ text }) => text)).toEqual(["Type is Link clicked ", "Type is not Link clicked "]);
    const [, isNot = ""] = chips.flatMap(({ links }) => links).map((link) => link.replaceAll("&amp;", "&"));
    expect((await textsAt(await pageAt(harness, isNot), ".chips li")).length).toBe(1);
  });

  test("keeps the chosen types, and the tab unless it is the news, in its form", async () => {
    const { harness } = await openMixed();
    const hiddenAt = async (path: string) => {
      const form = /<form class="filter" action="\/activity" .*?<\/form>/s.exec(await pageAt(harness, path));
      return [...(form?.[0] ?? "").matchAll(/type="hidden" name="(\w+)" value="(\w+)"/g)].map(([, ...pair]) =>
        pair.join("="),
      );
    };
    expect(await hiddenAt("/activity?type=LinkClicked&type=RunStarted&not=TokenUsed")).toEqual([
      "type=LinkClicked",
      "type=RunStarted",
      "not=TokenUsed",
    ]);
    expect(await hiddenAt("/activity?show=clicks&not=LinkAdded")).toEqual(["show=clicks", "not=LinkAdded"]);
    expect(await hiddenAt("/activity")).toEqual([]);
    expect(await hiddenAt("/activity?show=news&from=2")).toEqual([]);
  });

  test("ignores empty fields of the form", async () => {
    const { seenAt } = await openMixed();
    const { page, shown } = await seenAt("/activity?show=clicks&type=&not=&stream=&recipient=&from=6");
    expect(shown).toEqual([6]);
    expect(await textsAt(page, ".chips")).toEqual([]);
  });
});

describe("the page of a click", () => {
  test("shows every attempt on each channel with its outcome", async () => {
    const harness = await openConsole();
    await harness.append("link-go.example/a", dispatched("a"), dispatched("a"));
    const ads = { ...DETAIL, channel: "ads", status: 200 } as const;
    await harness.append(
      "delivery-ads",
      outcomeOf("DispatchFailed", {
        ...ads,
        source: 1,
        status: 503,
        detail: "busy",
        retry_at: "2026-11-20T10:00:00.000Z",
      }),
      outcomeOf("DispatchSucceeded", { ...ads, source: 2, latency_ms: 3 }),
      outcomeOf("DispatchSucceeded", { ...ads, source: 1, attempt: 2, latency_ms: 3 }),
    );
    const page = await pageAt(harness, "/activity/1");
    const [failed, succeeded, ...others] = await sentencesOf(page);
    expect(failed).toStartWith("Ads did not take 1 dispatch: busy. Next try at");
    expect(succeeded).toStartWith("Ads received 1 dispatch");
    expect(others).toEqual([]);
    expect(await textsAt(page, "h3")).toMatchObject([{ text: "ads" }, { text: "chat" }]);
    expect(page).toContain("No attempt is recorded yet.");
  });

  test("shows the outcome of the retry of a dead letter", async () => {
    const harness = await openConsole();
    await harness.append("link-go.example/a", dispatched("a"));
    const chat = { ...DETAIL, channel: "chat", source: 1 } as const;
    const { id } = await eventAt(harness.store, 1);
    await harness.append("delivery-chat", outcomeOf("DispatchAbandoned", { ...chat, detail: "gone", refused: true }));
    await harness.append("requests", {
      type: "DispatchRetryRequested",
      data: { event_id: id, source: 1, channel: "chat" },
    });
    await harness.append("delivery-chat", outcomeOf("DispatchSucceeded", { ...chat, source: 3, latency_ms: 3 }));
    const ended = ["Chat did not take 1 dispatch: gone", "An operator retried", "Chat received 1 dispatch"];
    const sentences = await sentencesOf(await pageAt(harness, "/activity/1"));
    expect(sentences.map((sentence, at) => sentence.slice(0, ended[at]?.length))).toEqual(ended);
    expect(await sentencesOf(await pageAt(harness, "/activity/3"))).toHaveLength(1);
  });

  test("says if the channel was far behind, so that outcomes may be missing", async () => {
    const harness = await openConsole();
    await harness.append("link-go.example/a", dispatched("a"), dispatched("b"));
    const other = outcomeOf("DispatchSucceeded", { ...DETAIL, channel: "ads", source: 2, latency_ms: 3 });
    await harness.append("delivery-ads", ...Array.from({ length: 1_000 }, () => other));
    expect(await pageAt(harness, "/activity/1")).toContain("This channel was far behind");
    expect(await pageAt(harness, "/activity/2")).not.toContain("This channel was far behind");
  });
});

test("the page of an event without dispatches has no outcomes", async () => {
  const harness = await openConsole();
  await harness.append("outreach", person("ada"));
  expect(await pageAt(harness, "/activity/1")).not.toContain(">Outcomes<");
});

describe("the page of an event", () => {
  const MESSAGE = { attempt_id: "a1", run_id: RUN, recipient: ADA };
  const attempted: NewEvent<"DirectMessageAttempted"> = {
    type: "DirectMessageAttempted",
    data: { ...MESSAGE, text: "Hi", variant: "B", day: "2026-11-20" },
  };
  const sent: NewEvent = { type: "DirectMessageSent", data: { ...MESSAGE, message_id: "m1", settled_by: "answer" } };

  /** Returns the positions of the events that an event's page lists as its causes or effects. */
  async function citedAt(harness: AppHarness, position: number, id: "causes" | "effects"): Promise<readonly number[]> {
    const page = await pageAt(harness, `/activity/${position}`);
    const rows = await textsAt(page, `section[aria-labelledby="${id}"] .line .t`);
    return rows.flatMap(({ links }) => links).map((href) => Number(href.split("/").at(-1)));
  }

  test("links a message to its run, its basis and its outcome", async () => {
    const harness = await openConsole();
    await harness.append(
      "outreach",
      addedOf(ADA, { basis: "opt_in" }),
      { type: "RunStarted", data: { run_id: RUN, dry_run: false } },
      attempted,
      sent,
      { ...attempted, data: { ...attempted.data, attempt_id: "a2" } },
    );
    expect(await citedAt(harness, 3, "causes")).toEqual([2, 1]);
    expect(await citedAt(harness, 3, "effects")).toEqual([4]);
    expect(await citedAt(harness, 4, "causes")).toEqual([2, 3]);
    expect(await citedAt(harness, 5, "causes")).toEqual([2, 1]);
    for (const position of [1, 2]) {
      const both = await Promise.all((["causes", "effects"] as const).map((id) => citedAt(harness, position, id)));
      expect(both).toEqual([[], []]);
    }
  });

  test("explains a hidden code, only where one is", async () => {
    const harness = await openConsole();
    const own = { personal_links: [{ code: "secret", link: "go.example/a" }], links: ["go.example/a"] };
    const data = { ...attempted.data, text: "see go.example/secret", ...own };
    await harness.append("outreach", attempted, { ...attempted, data: { ...data, attempt_id: "a2" } });
    const words = "stands for the code of the recipient's own link";
    expect(await pageAt(harness, "/activity/1")).not.toContain(words);
    const page = await pageAt(harness, "/activity/2");
    expect(page).toContain(words);
    expect(page).toContain("go.example/hidden-");
  });

  test("links a dispatch's outcome, and the decision on it, to the click", async () => {
    const harness = await openConsole();
    await harness.append("link-go.example/a", click("x"), dispatched("a"));
    const { id } = await eventAt(harness.store, 2);
    await harness.append(
      "delivery-ads",
      outcomeOf("DispatchAbandoned", { ...DETAIL, channel: "ads", source: 2, detail: "gone", refused: true }),
    );
    await harness.append("requests", {
      type: "DispatchRetryRequested",
      data: { event_id: id, source: 2, channel: "ads" },
    });
    expect(await citedAt(harness, 3, "causes")).toEqual([2]);
    expect(await citedAt(harness, 4, "causes")).toEqual([2]);
    expect(await citedAt(harness, 2, "causes")).toEqual([]);
  });

  test("links to the trace if TRACE_URL is set", async () => {
    const trace = "0af7651916cd43dd8448eb211c80319c";
    const traceparent = `00-${trace}-b7ad6b7169203331-01`;
    for (const [env, links] of [
      [{}, []],
      [{ TRACE_URL: "https://jaeger.example/trace/{id}?uiFind=1" }, [`https://jaeger.example/trace/${trace}?uiFind=1`]],
    ] as const) {
      const harness = await openConsole({ env });
      const { data } = click("a") as NewEvent<"LinkClicked">;
      const meta = { traceparent, caller: "anonymous" };
      await harness.store.append("link-go.example/a", [makeEvent("LinkClicked", makeId(), data, meta)]);
      const facts = await textsAt(await pageAt(harness, "/activity/1"), "dd");
      expect(facts.map(({ text }) => text)).toContain("a caller without a token");
      const shown = facts.find(({ text }) => text === traceparent);
      expect(shown?.links).toEqual([...links]);
    }
  });
});
