// On the memory harness.
import { expect, test } from "bun:test";
import { describeEvent } from "../../src/history/words.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { outcomeOf } from "../harness/memory/outcomes.ts";
import { oddIn } from "../harness/page.ts";
import { click, openConsole, pageAt, person, textsAt } from "./pages.ts";

const ADA = { id: "1001", username: "ada" };
const RUN = "0193a000-0000-7000-8000-0000000000aa";

function attempted(recipient: { id: string; username: string }, text: string): NewEvent {
  const data = { attempt_id: "a1", run_id: RUN, recipient, text, variant: "A", day: "2026-11-20" };
  return { type: "DirectMessageAttempted", data };
}

test("an event is the sentence of the command line, and leads to what it names and to its own page", async () => {
  const harness = await openConsole();
  await harness.append("outreach", person("ada"), attempted(ADA, "Hi Ada"));
  await harness.append("link-go.example/a", click("a/b"));
  for (const path of ["/", "/activity?show=everything"]) {
    const page = await pageAt(harness, path);
    const sentences = await textsAt(page, ".events .sentence");
    const events = await Array.fromAsync(harness.store.read({ backwards: true }));
    // Lists shorten ids; the linked pages show them in full.
    const short = (words: string): string =>
      words
        .replace(RUN, "…000000aa")
        .replace(" (1001)", "")
        .replace(/^[a-z]/, (letter) => letter.toUpperCase());
    expect(sentences.map(({ text }) => text)).toEqual(events.map((event) => short(describeEvent(event))));
    expect(page).toContain(`title="Run ${RUN}"`);
    expect(sentences.map(({ links }) => links)).toEqual([
      ["/links/go.example/a%2Fb"],
      [`/runs/${RUN}`, "/people/1001"],
      ["/people/@ada"],
    ]);
    const lines = await textsAt(page, ".events li > .when");
    expect(lines.flatMap(({ links }) => links)).toEqual(["/activity/3", "/activity/2", "/activity/1"]);
  }
});

test("an outcome leads to what requested it, and a moment is one that the script can tell", async () => {
  const harness = await openConsole();
  await harness.append("link-go.example/a", click("a"));
  const failed = { source: 1, lane: "clicks", low_watermark: 1, channel: "ads", detail: "busy", status: 503 } as const;
  await harness.append(
    "delivery-ads",
    outcomeOf("DispatchFailed", { ...failed, retry_at: "2026-11-20T10:00:00.000Z" }),
    outcomeOf("DispatchFailed", { ...failed, retry_at: "2026-11-20<b>" }),
  );
  const page = await pageAt(harness, "/activity?show=everything");
  const [wrong, right] = await textsAt(page, ".events .sentence");
  expect(right).toMatchObject({ links: ["/activity/1"], text: expect.stringContaining("2026-11-20 10:00:00 UTC") });
  expect(wrong?.text).toEndWith("next attempt at 2026-11-20<b>");
  expect(page).not.toContain('datetime="2026-11-20<b>');
});

test.each(["", "x"])(
  "of thousands of characters a list shows the beginning, the event's own page all: %j",
  async (first) => {
    const harness = await openConsole();
    const text = `${first}${"😀".repeat(2_000)} the end`;
    await harness.append("requests", { type: "MessageRequested", data: { text } });
    const [sentence] = await textsAt(await pageAt(harness, "/activity?show=everything"), ".events .sentence");
    expect(sentence?.text.length).toBeLessThan(450);
    expect(sentence?.links).toEqual(["/activity/1"]);
    expect(sentence?.text).toEndWith("… whole event");
    // No character is cut in half.
    expect(sentence?.text).not.toContain("\ufffd");
    const [whole] = await textsAt(await pageAt(harness, "/activity/1"), ".sentence");
    expect(whole?.text).toContain("the end");
  },
);

test("a hundred of the longest sentences fit the page", async () => {
  const harness = await openConsole();
  const message = `<&"'`.repeat(1_000);
  const long = { type: "NotificationRequested", data: { message, service: message, level: "info" } } as const;
  for (let at = 0; at < 100; at++) await harness.append("requests", long);
  expect((await pageAt(harness, "/activity?show=everything")).length).toBeLessThan(200_000);
});

test("who was erased is called so, and leads nowhere", async () => {
  const harness = await openConsole();
  await harness.append("outreach", attempted({ id: "erased:01", username: "erased:01" }, "erased"));
  const [sentence] = await textsAt(await pageAt(harness, "/activity?show=everything"), ".events .sentence");
  expect(sentence?.text).toContain("is sending to erased, quota day");
  expect(sentence?.links).toEqual([`/runs/${RUN}`]);
});

const HOSTILE = `<img src=x onerror=alert(1)>"'></bdi><script>alert(1)</script>\u202e\u2066\u0000javascript:alert(1)`;

test("what others wrote is text in a sentence, isolated from our words, and no address", async () => {
  const harness = await openConsole();
  const recipient = { id: HOSTILE, username: HOSTILE };
  const message = { attempt_id: HOSTILE, run_id: HOSTILE, recipient };
  await harness.append(
    "outreach",
    {
      type: "RecipientAdded",
      data: { recipient, name: HOSTILE, basis: "none", fields: { [HOSTILE]: HOSTILE }, source: "list" },
    },
    { type: "DirectMessageAttempted", data: { ...message, text: HOSTILE, variant: HOSTILE, day: HOSTILE } },
    { type: "DirectMessageSent", data: { ...message, message_id: HOSTILE, settled_by: "answer" } },
    { type: "DirectMessageReceived", data: { recipient, message_id: HOSTILE, received_at: HOSTILE } },
  );
  const page = await pageAt(harness, "/activity?show=everything");
  expect(await oddIn(page)).toEqual([]);
  // oxlint-disable-next-line no-control-regex
  expect(page).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u0000]/);
  const sentences = page.match(/<p class="sentence">.*?<\/p>/gs) ?? [];
  expect(sentences).toHaveLength(4);
  for (const sentence of sentences) {
    const ownWords = sentence.replaceAll(/<bdi[^>]*>.*?<\/bdi>/gs, "");
    expect(ownWords.replaceAll(/<[^>]*>/g, "")).not.toMatch(/alert|&lt;/);
  }
});
