// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { parseTemplate } from "../../../src/template/template.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { clickOf } from "../../harness/in-process/make-recipient-and-click-events.ts";
import { ask } from "../../harness/in-process/app.ts";
import { openConsole, pageAt, rowsOf, textsAt } from "../open-console.ts";

let made = 0;

/** Builds the events of a message to a new recipient, sent with this variant of this template. */
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

/** Returns the rows of the page's charts of rates as text; the last row of a chart is its axis. */
async function ratesOn(page: string): Promise<readonly string[]> {
  return (await textsAt(page, ".rates li")).map(({ text }) => text);
}

test("the page shows each variant's rates with intervals on one axis, its counts and a CSV link", async () => {
  const harness = await openConsole();
  await harness.append("outreach", ...message("A", "aaaa", { replies: true }), ...message("B"), ...message("B"));
  await harness.append("link", clickOf({ short_code: "A", bot: true }));
  const page = await pageAt(harness, "/results");
  expect(await ratesOn(page)).toEqual([
    "A95 % interval: 21 % to 100 %100 % 1 of 1",
    "B95 % interval: 0 % to 66 %0 % 0 of 2",
    "0 %25 %50 %75 %100 %",
  ]);
  expect(await rowsOf(page)).toEqual([
    "aaaa | A | 1 | 0 | 0 | 1 | 0 | 0 | 0 | 0 | 1 | –",
    "aaaa | B | 2 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | –",
  ]);
  expect((await textsAt(page, "thead")).at(-1)?.text).toContain("clicks, totalclicks, uniquesuspectedbots");
  expect(page).toContain("<p>1 of 20 sent with A, 2 with B.</p>");
  const csv = /href="(\/social\/results[^"]*)"/.exec(page)?.[1] ?? "";
  expect(csv).toBe("/social/results?by=variant&amp;format=csv");
});

test("clicks on a link that no message held are on the page of links only, and both pages say so", async () => {
  const harness = await openConsole();
  await harness.append("outreach", ...message("A"));
  await harness.append("link", clickOf({ short_code: "A" }), clickOf({ short_code: "elsewhere" }));
  const figures = await textsAt(await pageAt(harness, "/results"), ".figures > div");
  const clicks = "Clicks by people10 more may be X itself, 0 are by bots; Links has the clicks on all links";
  expect(figures.map(({ text }) => text)).toContain(clicks);
  const links = await pageAt(harness, "/links");
  const shown = await textsAt(links, "p.quiet");
  expect(shown.map(({ text }) => text).join("")).toContain("Results counts the clicks on links of messages.");
  expect((await rowsOf(links)).filter((row) => row.startsWith("go.example"))).toHaveLength(2);
});

test("results by run count the clicks of recipients who granted tracking, and say so", async () => {
  const harness = await openConsole();
  await harness.append("outreach", ...message("A"));
  const page = await pageAt(harness, "/results?by=run");
  expect(page).toContain("Only clicks of recipients who granted tracking");
  expect((await rowsOf(page)).at(-1)).toBe("Run run-1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | –");
  expect(page).not.toContain("Not enough messages yet");
  expect(await ratesOn(page)).toEqual(["Run run-195 % interval: 0 % to 79 %0 % 0 of 1", "0 %20 %40 %60 %80 %"]);
});

test("sorting the table does not reorder the rates", async () => {
  const harness = await openConsole();
  await harness.append("outreach", ...message("A", "aaaa", { replies: true }), ...message("B"), ...message("B"));
  const variantsAt = async (path: string) =>
    (await rowsOf(await pageAt(harness, path))).map((row) => row.split(" | ")[1]);
  expect(await variantsAt("/results?sort=sent&order=descending")).toEqual(["B", "A"]);
  expect(await variantsAt("/results?sort=replied&order=descending")).toEqual(["A", "B"]);
  const sorted = await pageAt(harness, "/results?sort=variant&order=descending");
  expect((await rowsOf(sorted)).map((row) => row.split(" | ")[1])).toEqual(["B", "A"]);
  expect((await ratesOn(sorted)).map((row) => row[0])).toEqual(["A", "B", "0"]);
  await harness.append("outreach", ...message("C", "0000"));
  // The newest template is the last one in the table, whatever its id is.
  expect(await variantsAt("/results")).toEqual(["A", "B", "C"]);
  const page = await pageAt(harness, "/results?from=2026-01-01&sort=sent&order=descending");
  expect(await textsAt(page, "th[aria-sort]")).toEqual([
    { text: "sent", links: ["/results?from=2026-01-01&amp;sort=sent&amp;order=ascending"] },
  ]);
});

test("chosen days are compared with the days before; invalid days are ignored", async () => {
  const harness = await openConsole();
  await harness.append("outreach", ...message("A"));
  expect(await pageAt(harness, "/results?from=2026-01-01&to=2026-01-10")).toContain(
    "2026-01-01 to 2026-01-10, next to 2025-12-22 to 2025-12-31.",
  );
  expect(await pageAt(harness, "/results?from=2026-01-01&to=2026-01-10")).toContain("No message was attempted");
  expect((await rowsOf(await pageAt(harness, "/results?from=x"))).length).toBeGreaterThan(0);
});

/** The sentence of a verdict about a message whose text neither the settings nor the log hold. */
const WITHOUT_TEXT = "The settings no longer hold this message. Its text is on the page of each person who got it.";

test("each template has a verdict that names it, and only a winner has a color", async () => {
  const harness = await openConsole();
  const many = Array.from({ length: 20 }, () => [
    ...message("A", "aaaa", { replies: true, template_name: "Autumn invite" }),
    ...message("B", "aaaa", { template_name: "Autumn invite" }),
    ...message("A", "bbbb"),
    ...message("B", "bbbb"),
  ]).flat();
  await harness.append("outreach", ...many);
  const page = await pageAt(harness, "/results");
  const verdicts = (await textsAt(page, ".verdict")).map(({ text }) => text);
  expect(verdicts).toEqual([
    `Autumn invite, 40 messagesA is better: more people reply100 % replied with A, 0 % with B. Luck alone would give this in fewer than 1 of 1,000 tries.${WITHOUT_TEXT}`,
    `bbbb, 40 messagesNo difference worth waiting for0 % replied with both. Choose by taste.${WITHOUT_TEXT}`,
  ]);
  expect((await textsAt(page, ".winner")).map(({ text }) => text)).toEqual([
    "A95 % interval: 84 % to 100 %100 % 20 of 20",
  ]);
  const byCampaign = await textsAt(await pageAt(harness, "/results?by=campaign"), ".verdict");
  expect(byCampaign.map(({ text }) => text)).toEqual(verdicts);
  // Both charts of rates have the same axis.
  expect((await ratesOn(page)).filter((row) => row.startsWith("0 %2"))).toHaveLength(2);
  const { verdicts: said } = (await (await ask(harness.app, "/social/results")).json()) as {
    verdicts: { title: string; explanation: string }[];
  };
  expect(said.map(({ title, explanation }) => [verdicts[0]?.includes(title + explanation), title])).toEqual([
    [true, "A is better: more people reply"],
    [false, "No difference worth waiting for"],
  ]);
});

test("a verdict shows how each variant's text begins, if the settings or the log hold it, and links the whole text", async () => {
  const own = `${"a".repeat(100)}\n---\nGuten\nTag`;
  const harness = await openConsole({ env: { MESSAGE_TEMPLATE: own } });
  const text = (first: string) => `${first}\n---\nHo {{name|there}}`;
  const campaign = (type: "CampaignCreated" | "CampaignChanged", first: string) =>
    ({ type, data: { name: "spring", text: text(first), audience: {} } }) as const;
  await harness.append("outreach", campaign("CampaignCreated", "One"), campaign("CampaignChanged", "Two"));
  const { id } = parseTemplate(own);
  const sent = [id, parseTemplate(text("One")).id, parseTemplate(text("Two")).id, "aaaa"];
  await harness.append("outreach", ...sent.flatMap((template) => ["A", "B"].flatMap((one) => message(one, template))));
  const [first] = await Array.fromAsync(harness.store.read({ types: ["CampaignCreated"] }));
  for (const path of ["/results", "/results?by=campaign"]) {
    const shown = await textsAt(await pageAt(harness, path), ".verdict");
    const found = new Map(shown.map((one) => [one.text.split(",")[0], one]));
    const whole = (href: string) => [href, href];
    expect(found.get(id)!.text).toEndWith(`A ${"a".repeat(80)}…B Guten Tag`);
    expect(found.get(id)!.links).toEqual(whole("/campaigns/default#text"));
    expect(found.get(sent[1])!.text).toEndWith("A OneB Ho {{name|there}}");
    expect(found.get(sent[1])!.links).toEqual(whole(`/activity/${first!.position}`));
    expect(found.get(sent[2])!.text).toEndWith("A TwoB Ho {{name|there}}");
    expect(found.get(sent[2])!.links).toEqual(whole("/campaigns/spring#text"));
    expect(found.get("aaaa")!.text).toContain("of 20 sent");
    expect(found.get("aaaa")!.text).toEndWith(WITHOUT_TEXT);
    expect(found.get("aaaa")!.links).toEqual([]);
  }
  const early = await textsAt(await pageAt(harness, "/results?as_of=8"), ".verdict");
  expect(early.flatMap(({ links }) => links)[0]).toBe("/campaigns/default?as_of=8#text");
});

test("the last days are compared with as many before, and a figure stands beside its change", async () => {
  const harness = await openConsole();
  await harness.append("outreach", ...message("A"));
  const page = await pageAt(harness, "/results?days=7");
  expect(page).toContain('<dd class="figure">1 <small>0 before</small></dd>');
  expect(page).toContain('<option value="7" selected>');
  expect((await rowsOf(page))[0]).toEndWith("| – | –");
  expect(await pageAt(harness, "/results")).not.toContain(" before</small>");
});

test("the cost of the runs in the days is shown in cents, and per message", async () => {
  const harness = await openConsole();
  const counts = { sent: 3, skipped: 0, failed: 0, in_doubt: 0 };
  const usage = { sends: 3, users: 1, followers: 0, posts: 0, messages: 0, usd: 0.0861 };
  await harness.append(
    "outreach",
    { type: "RunStarted", data: { run_id: "run-1", dry_run: false } },
    ...message("A"),
    ...message("A"),
    ...message("B"),
    { type: "RunFinished", data: { run_id: "run-1", reason: "completed", ...counts, usage } },
  );
  const costOn = async (path: string) => (await textsAt(await pageAt(harness, path), ".figures > div")).at(-1)?.text;
  expect(await costOn("/results?days=7")).toBe("Cost$0.09at most; $0.029 per message");
  expect(await (await ask(harness.app, "/social/results?to=2026-01-01")).json()).toMatchObject({ cost_usd: null });
});

test("a template is shown by its name, plus its id if the name is ambiguous", async () => {
  const harness = await openConsole();
  await harness.append(
    "outreach",
    ...message("A", "aaaa", { template_name: "Autumn invite" }),
    ...message("A", "bbbb"),
  );
  const namesAt = async (path: string) =>
    (await textsAt(await pageAt(harness, path), "tbody th")).map(({ text }) => text);
  expect(await namesAt("/results?by=template")).toEqual(["Autumn invite", "bbbb"]);
  await harness.append("outreach", ...message("A", "bbbb", { template_name: "Autumn invite" }));
  expect(new Set(await namesAt("/results?by=template"))).toEqual(
    new Set(["Autumn invite (aaaa)", "Autumn invite (bbbb)"]),
  );
});

test("the current message is shown if rows belong to it", async () => {
  const template = parseTemplate("Hi {{name|there}}");
  const harness = await openConsole({ env: { MESSAGE_TEMPLATE: template.text } });
  await harness.append("outreach", ...message("A"));
  expect(await pageAt(harness, "/results")).not.toContain("{{name|there}}");
  await harness.append("outreach", ...message("A", template.id));
  expect(await pageAt(harness, "/results")).toContain("<pre>Hi {{name|there}}</pre>");
});
