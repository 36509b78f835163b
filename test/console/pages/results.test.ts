// On the memory harness.
import { expect, test } from "bun:test";
import { parseTemplate } from "../../../src/template/template.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { clickOf } from "../../harness/memory/new-events.ts";
import { openConsole, pageAt, rowsOf, textsAt } from "../pages.ts";

let made = 0;

/** The events of a message that was sent with this template. */
function message(
  variant: string,
  template = "aaaa",
  more: { replies?: true; template_name?: string } = {},
): NewEvent[] {
  const attempt_id = `attempt-${++made}`;
  const recipient = { id: String(made), username: `user_${made}` };
  const outcome = { attempt_id, run_id: "run-1", recipient };
  const name = more.template_name === undefined ? {} : { template_name: more.template_name };
  const text = { text: "Hi", template, ...name, variant, links: [`go.example/${variant}`], day: "2026-11-20" };
  const reply = { recipient, message_id: "r", received_at: "2999-01-01T00:00:00.000Z" };
  return [
    { type: "DirectMessageAttempted", data: { ...outcome, ...text } },
    { type: "DirectMessageSent", data: { ...outcome, message_id: "m", settled_by: "answer" } },
    ...(more.replies === true ? [{ type: "DirectMessageReceived", data: reply } as const] : []),
  ];
}

test("the page shows what came of each variant, with intervals, clicks total and unique, and all figures as CSV", async () => {
  const harness = await openConsole();
  await harness.append("outreach", ...message("A", "aaaa", { replies: true }), ...message("B"), ...message("B"));
  await harness.append("link", clickOf({ short_code: "A", bot: true }));
  const page = await pageAt(harness, "/results");
  const rows = await rowsOf(page);
  expect(rows.slice(0, 2)).toEqual([
    "aaaa | A | 100.0 % (20.7 % to 100.0 %) | none",
    "aaaa | B | 0.0 % (0.0 % to 65.8 %) | none",
  ]);
  expect(rows.slice(2)).toEqual([
    "aaaa | A | 1 | 0 | 0 | 1 | 0 | 0 | 0 | 0 | 1 | – | – | –",
    "aaaa | B | 2 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | – | – | –",
  ]);
  expect((await textsAt(page, "thead")).at(-1)?.text).toContain("clicks, totalclicks, uniquesuspectedbots");
  expect(page).toContain("Too early to call");
  const csv = /href="(\/social\/results[^"]*)"/.exec(page)?.[1] ?? "";
  expect(csv).toContain("by=variant&amp;from=");
  expect(csv).toEndWith("format=csv");
});

test("by run it says that clicks are those of recipients who granted tracking", async () => {
  const harness = await openConsole();
  await harness.append("outreach", ...message("A"));
  const page = await pageAt(harness, "/results?by=run");
  expect(page).toContain("Clicks are those of recipients who granted tracking");
  expect((await rowsOf(page)).at(-1)).toBe("Run run-1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | – | – | –");
  expect(page).not.toContain("Too early to call");
});

test("the table of all rows is sorted by any of its columns, and the charts stay as they are", async () => {
  const harness = await openConsole();
  await harness.append("outreach", ...message("A", "aaaa", { replies: true }), ...message("B"), ...message("B"));
  const variantsAt = async (path: string) =>
    (await rowsOf(await pageAt(harness, path))).map((row) => row.split(" | ")[1]);
  expect(await variantsAt("/results?sort=sent&order=descending")).toEqual(["A", "B", "B", "A"]);
  expect(await variantsAt("/results?sort=replied&order=descending")).toEqual(["A", "B", "A", "B"]);
  expect(await variantsAt("/results?sort=variant&order=descending")).toEqual(["A", "B", "B", "A"]);
  await harness.append("outreach", ...message("C", "0000"));
  // The newest template is last, whatever its id.
  expect(await variantsAt("/results")).toEqual(["A", "B", "C", "A", "B", "C"]);
  const page = await pageAt(harness, "/results?from=2026-01-01&sort=sent&order=descending");
  expect(await textsAt(page, "th[aria-sort]")).toEqual([
    { text: "sent", links: ["/results?from=2026-01-01&amp;sort=sent&amp;order=ascending"] },
  ]);
});

test("of variants with as many replies neither is ahead", async () => {
  const harness = await openConsole();
  await harness.append("outreach", ...message("A"), ...message("B"));
  expect(await pageAt(harness, "/results")).not.toContain("is ahead of");
});

test("days are chosen, with those before beside them; days that are none are as if not given", async () => {
  const harness = await openConsole();
  await harness.append("outreach", ...message("A"));
  expect(await pageAt(harness, "/results?from=2026-01-01&to=2026-01-10")).toContain(
    "2026-01-01 to 2026-01-10, next to 2025-12-22 to 2025-12-31.",
  );
  expect(await pageAt(harness, "/results?from=2026-01-01&to=2026-01-10")).toContain("No message was attempted");
  expect((await rowsOf(await pageAt(harness, "/results?from=x"))).length).toBeGreaterThan(0);
});

test("a variant whose interval lies above the other's gets more replies", async () => {
  const harness = await openConsole();
  const many = Array.from({ length: 20 }, () => [...message("A", "aaaa", { replies: true }), ...message("B")]).flat();
  await harness.append("outreach", ...many);
  const page = await pageAt(harness, "/results");
  expect(page).toContain("A gets more replies");
  expect(page).toContain("by 100.0 points in replies, and the intervals do not overlap.");
});

test("a template is called by its name, and by its id as well where another has the same name", async () => {
  const harness = await openConsole();
  await harness.append(
    "outreach",
    ...message("A", "aaaa", { template_name: "Autumn invite" }),
    ...message("A", "bbbb"),
  );
  const namesAt = async (path: string) =>
    (await textsAt(await pageAt(harness, path), "tbody th")).map(({ text }) => text);
  expect(await namesAt("/results?by=template")).toEqual(["Autumn invite", "bbbb", "Autumn invite", "bbbb"]);
  await harness.append("outreach", ...message("A", "bbbb", { template_name: "Autumn invite" }));
  expect(new Set(await namesAt("/results?by=template"))).toEqual(
    new Set(["Autumn invite (aaaa)", "Autumn invite (bbbb)"]),
  );
});

test("the message configured now is shown where rows are of it", async () => {
  const template = parseTemplate("Hi {{name|there}}");
  const harness = await openConsole({ env: { MESSAGE_TEMPLATE: template.text } });
  await harness.append("outreach", ...message("A"));
  expect(await pageAt(harness, "/results")).not.toContain("{{name|there}}");
  await harness.append("outreach", ...message("A", template.id));
  expect(await pageAt(harness, "/results")).toContain("<pre>Hi {{name|there}}</pre>");
});
