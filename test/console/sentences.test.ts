// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { describeEvent } from "../../src/history/event-sentences.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { outcomeOf } from "../harness/in-process/dispatch-outcome-events.ts";
import { oddIn } from "../harness/unexpected-html.ts";
import { click, openConsole, pageAt, person, textsAt } from "./open-console.ts";

const ADA = { id: "1001", username: "ada" };
const RUN = "0193a000-0000-7000-8000-0000000000aa";

function attempted(recipient: { id: string; username: string }, text: string): NewEvent {
  const data = { attempt_id: "a1", run_id: RUN, recipient, text, variant: "A", day: "2026-11-20" };
  return { type: "DirectMessageAttempted", data };
}

test("an event has its short sentence, with links to what it names; its page has the sentence of the command line", async () => {
  const harness = await openConsole();
  await harness.append("outreach", person("ada"), attempted(ADA, "Hi Ada"));
  await harness.append("link-go.example/a", click("a/b"));
  const page = await pageAt(harness, "/activity?show=everything");
  const sentences = await textsAt(page, ".line .sentence");
  expect(sentences).toEqual([
    { text: "A person clicked go.example/a/b", links: ["/links/go.example/a%2Fb"] },
    { text: "Sending to @ada (variant A)", links: ["/people/1001"] },
    { text: "An operator imported @ada", links: ["/people/@ada"] },
  ]);
  const lines = await textsAt(page, ".line .t");
  expect(lines.flatMap(({ links }) => links)).toEqual(["/activity/3", "/activity/2", "/activity/1"]);
  const [whole] = await textsAt(await pageAt(harness, "/activity/2"), ".sentence");
  // The page shows shortened ids. The full ids are in titles and in the event's data.
  expect(whole?.text.replace("@ada", "@ada (1001)")).toBe(
    describeEvent({ type: "DirectMessageAttempted", data: attempted(ADA, "Hi Ada").data as never })
      .replace(RUN, "…000000aa")
      .replace(/^r/, "R"),
  );
});

test("an invalid time is plain text", async () => {
  const harness = await openConsole();
  await harness.append("link-go.example/a", click("a"));
  const failed = { source: 1, lane: "clicks", low_watermark: 1, channel: "ads", detail: "busy", status: 503 } as const;
  await harness.append(
    "delivery-ads",
    outcomeOf("DispatchFailed", { ...failed, retry_at: "2026-11-20T10:00:00.000Z" }),
    outcomeOf("DispatchFailed", { ...failed, retry_at: "2026-11-20<b>" }),
  );
  const page = await pageAt(harness, "/activity?show=everything");
  const [wrong, right] = await textsAt(page, ".line .sentence");
  expect(right).toMatchObject({ text: expect.stringContaining("20 Nov, 10:00") });
  expect(wrong?.text).toEndWith("Next try at 2026-11-20<b>");
  expect(page).not.toContain('datetime="2026-11-20<b>');
});

test.each(["", "x"])("a list shortens a long text, and the event's page shows all of it: %j", async (first) => {
  const harness = await openConsole();
  const text = `${first}${"😀".repeat(2_000)} the end`;
  await harness.append("requests", { type: "MessageRequested", data: { text } });
  const [sentence] = await textsAt(await pageAt(harness, "/activity?show=everything"), ".line .sentence");
  expect(sentence?.text.length).toBeLessThan(450);
  expect(sentence?.links).toEqual(["/activity/1"]);
  expect(sentence?.text).toEndWith("… whole event");
  // The sentence is not cut within a character.
  expect(sentence?.text).not.toContain("\ufffd");
  const [whole] = await textsAt(await pageAt(harness, "/activity/1"), ".sentence");
  expect(whole?.text).toContain("the end");
});

test("a hundred of the longest sentences fit the page", async () => {
  const harness = await openConsole();
  const message = `<&"'`.repeat(1_000);
  const long = { type: "NotificationRequested", data: { message, service: message, level: "info" } } as const;
  for (let at = 0; at < 100; at++) await harness.append("requests", long);
  expect((await pageAt(harness, "/activity?show=everything")).length).toBeLessThan(200_000);
});

test("an erased recipient is shown as erased, without a link", async () => {
  const harness = await openConsole();
  await harness.append("outreach", attempted({ id: "erased:01", username: "erased:01" }, "erased"));
  const [sentence] = await textsAt(await pageAt(harness, "/activity?show=everything"), ".line .sentence");
  expect(sentence?.text).toContain("Sending to erased (variant A)");
  expect(sentence?.links).toEqual([]);
});

const HOSTILE = `<img src=x onerror=alert(1)>"'></bdi><script>alert(1)</script>\u202e\u2066\u0000javascript:alert(1)`;

test("texts of strangers are escaped and isolated in a sentence", async () => {
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
