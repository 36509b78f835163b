// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { makeId } from "../../../src/platform/clock-ids-and-timers.ts";
import { ask, post } from "../../harness/in-process/app.ts";
import { openConsole, openSignedIn, pageAt, person, rowsOf, textsAt } from "../open-console.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };

const created = (name: string, audience: object): NewEvent => ({
  type: "CampaignCreated",
  data: { name, text: "Hi\n---\nHello", audience },
});

/** A console with the campaign `spring`, its follow-up, a run of each, and three recipients. */
async function openWithCampaigns() {
  const harness = await openConsole();
  const run_id = makeId();
  const ada = { id: "1001", username: "ada" };
  const about = { attempt_id: "a", run_id, recipient: ada, campaign: "spring" };
  await harness.append(
    "outreach",
    person("ada"),
    person("bob"),
    person("cid", "none"),
    created("spring", { source: "list" }),
    created("spring-2", { messaged: "spring", days: 5 }),
    { type: "RunStarted", data: { run_id, dry_run: false, campaign: "spring" } },
    { type: "DirectMessageAttempted", data: { ...about, text: "Hi", variant: "A", day: "2026-03-01" } },
    { type: "DirectMessageSent", data: { ...about, message_id: "m", settled_by: "answer" } },
    { type: "RunFinished", data: { run_id, reason: "completed", sent: 1, skipped: 0, failed: 0, in_doubt: 0 } },
  );
  return harness;
}

describe("the pages of campaigns", () => {
  test("list each campaign with its audience and the messages it sent", async () => {
    await using harness = await openWithCampaigns();
    const rows = await rowsOf(await pageAt(harness, "/campaigns"));
    expect(rows).toEqual([
      "default | all recipients | 0 | by the settings | Open | Follow up…",
      expect.stringMatching(/^spring \| recipients from the source list \| 1 \| .* \| Open \| Follow up…$/),
      expect.stringMatching(/^spring-2 \| recipients who got a message of spring .* \| 0 \| .* \| Open \| Follow up…$/),
    ]);
  });

  test("show a campaign with its audience, the reasons of those left out, its run and its results", async () => {
    await using harness = await openWithCampaigns();
    const page = await pageAt(harness, "/campaigns/spring");
    expect((await textsAt(page, "pre")).map(({ text }) => text)).toEqual(["Hi\n---\nHello"]);
    expect(await rowsOf(page)).toEqual([
      expect.stringMatching(/^Run 1 \| .* \| 1 \| 0 \| 0 \| 0 \| completed$/),
      "no consent on record | 2 | in the audience, but not now",
      "already contacted | 1 | in the audience, but not now",
    ]);
    expect(await rowsOf(await pageAt(harness, "/campaigns/spring-2"))).toEqual([
      "not messaged | 2 | left out",
      "messaged recently | 1 | left out",
    ]);
    expect((await ask(harness.app, "/campaigns/never")).status).toBe(404);
  });

  test("a recipient's page says what each campaign sent, and why a next message is possible or not", async () => {
    await using harness = await openWithCampaigns();
    expect((await rowsOf(await pageAt(harness, "/people/@ada"))).slice(0, 3)).toEqual([
      expect.stringMatching(/^default \| none \| .*no: too soon \(possible from .*\)$/),
      expect.stringMatching(/^spring \| sent \| .* \| A \| no: one message of each campaign$/),
      expect.stringMatching(
        /^spring-2 \| none \| .*no: not in audience \(messaged recently until \d+ \w+, \d\d:\d\d\)$/,
      ),
    ]);
    expect((await rowsOf(await pageAt(harness, "/people/@bob")))[1]).toContain("no: no consent (");
  });

  test("a recipient's page names the other topics and campaigns that a consent holds for", async () => {
    await using harness = await openWithCampaigns();
    const consent = { basis: "opt_in", consent_at: "2025-01-01", consent_source: "form" } as const;
    await harness.append(
      "outreach",
      { type: "CampaignCreated", data: { name: "tea", text: "Hi", audience: {}, topic: "events" } },
      { type: "ConsentRecorded", data: { recipient: { username: "bob" }, ...consent, consent_for: "newsletter" } },
      { type: "ConsentRecorded", data: { recipient: { username: "bob" }, ...consent, consent_for: "Spring" } },
    );
    const rows = await rowsOf(await pageAt(harness, "/people/@bob"));
    const named = rows.find((row) => row.startsWith("tea "))?.replaceAll("&quot;", '"');
    expect(named).toContain(
      '; consented to "newsletter" and "Spring", this campaign is "tea" with the topic "events")',
    );
    expect(rows[1]).toContain("possible, unless X refuses");
  });

  test("show a campaign whose text the settings cannot send, with the fault, and no other page fails", async () => {
    await using harness = await openConsole();
    const data = { name: "spring", text: "Hi {{optout}}", audience: {} };
    await harness.append("outreach", person("ada"), { type: "CampaignCreated", data });
    expect((await rowsOf(await pageAt(harness, "/campaigns")))[1]).toMatch(
      /^spring \| .* \| Unusable text \| Follow up…$/,
    );
    const page = await pageAt(harness, "/campaigns/spring");
    const fault = "line 1, column 1: {{optout}} needs PUBLIC_URL, an address that recipients can open";
    expect((await textsAt(page, '[role="alert"]'))[0]!.text).toEndWith(`the settings cannot send its text: ${fault}.`);
    expect(await rowsOf(page)).toEqual(["unusable text | 1 | in the audience, but not now"]);
    const next = async () => (await rowsOf(await pageAt(harness, "/people/@ada")))[1];
    expect(await next()).toEndWith(`no: its text cannot be sent (${fault})`);
    await harness.append("outreach", { type: "CampaignEnded", data: { name: "spring" } });
    expect(await next()).toEndWith("no: it has ended");
    expect(await textsAt(await pageAt(harness, "/campaigns/spring"), '[role="alert"]')).toEqual([]);
  });

  test("fill the form of a change with the campaign's own gap and offer the sources of an audience", async () => {
    const { harness, cookie } = await openSignedIn();
    const gapIn = async (name: string) => {
      const page = await (await ask(harness.app, `/campaigns/${name}`, { headers: { cookie } })).text();
      return /<input type="number" name="gap_days"[^>]*>/
        .exec(page)?.[0]
        .replaceAll(/.*gap_days" | max="3650"|\/?>/g, "");
    };
    const own = { text: "Hi", audience: {} };
    await harness.append(
      "outreach",
      { type: "CampaignCreated", data: { name: "common", ...own } },
      { type: "CampaignCreated", data: { name: "short", gap_days: 10, ...own } },
    );
    expect([await gapIn("common"), await gapIn("short")]).toEqual([
      'min="30" placeholder="30"',
      'min="10" value="10" placeholder="30"',
    ]);
    const page = await (await ask(harness.app, "/campaigns", { headers: { cookie } })).text();
    const [options = ""] = /(?<=<select name="source">).*?(?=<\/select>)/s.exec(page) ?? [];
    expect([...options.matchAll(/value="(\w+)"/g)].map(([, value]) => value)).toEqual(["list", "inbound"]);
  });

  test("create, change and end a campaign by their forms", async () => {
    const { harness, cookie, form_token } = await openSignedIn();
    await harness.append("outreach", person("ada"));
    const send = (action: string, fields: Record<string, string>) => {
      const body = new URLSearchParams({ form_token, back: "/campaigns", ...fields }).toString();
      return post(harness.app, `/console/campaigns/${action}`, body, { headers: { ...FORM, cookie } });
    };
    const read = () => harness.projector.state("campaigns").named.get("spring");
    const fields = {
      name: "spring",
      text: "Hi\n---\nHo",
      timezones: "UTC\nAsia/Tokyo\n",
      messaged: "default",
      days: "3",
    };
    expect((await send("create", { ...fields, replied: "true", topic: "" })).status).toBe(303);
    expect(read()).toMatchObject({
      text: "Hi\n---\nHo",
      audience: { timezones: ["UTC", "Asia/Tokyo"], messaged: "default", days: 3, replied: true },
    });
    await send("change", { name: "spring", text: "New", all: "true", source: "" });
    expect(read()).toMatchObject({ text: "New", audience: {}, ended_at: null });
    await send("change", { name: "spring", text: "New", all: "true", topic: "news", gap_days: "40" });
    expect(read()).toMatchObject({ topic: "news", gap_days: 40 });
    await send("change", { name: "spring", text: "New", all: "true", topic: "", gap_days: "" });
    expect([read()!.topic, read()!.gap_days]).toEqual([undefined, undefined]);
    await send("end", { name: "spring" });
    expect(read()!.ended_at).toBeString();
  });

  test("offer a follow-up with a free name and the recipients who did not reply, unless the chain is full", async () => {
    const { harness, cookie } = await openSignedIn();
    await harness.append(
      "outreach",
      created("spring", {}),
      created("spring-follow-up", { messaged: "spring" }),
      created("last", { messaged: "spring-follow-up" }),
      created("long-name-of-a-campaign-with-40-character", {}),
    );
    const read = async (path: string) => (await ask(harness.app, path, { headers: { cookie } })).text();
    const nameIn = async (campaign: string) => {
      const form = /action="\/console\/campaigns\/create".*?<\/form>/s.exec(await read(`/campaigns/${campaign}`))?.[0];
      return [/name="name"[^>]*value="([^"]*)"/.exec(form ?? "")?.[1], form?.includes(`value="${campaign}" selected`)];
    };
    expect([await nameIn("default"), await nameIn("spring"), await nameIn("spring-follow-up")]).toEqual([
      ["default-follow-up", true],
      ["spring-follow-up-2", true],
      ["spring-follow-up-2", true],
    ]);
    expect((await nameIn("long-name-of-a-campaign-with-40-character"))[0]).toBe(
      "long-name-of-a-campaign-with-4-follow-up",
    );
    expect(await nameIn("last")).toEqual([undefined, undefined]);
    const list = await read("/campaigns");
    expect([...list.matchAll(/aria-label="Follow up ([\w-]+)…"/g)].map(([, name]) => name)).toEqual([
      "default",
      "spring",
      "spring-follow-up",
      "long-name-of-a-campaign-with-40-character",
    ]);
    const [confirm = ""] = /(?<=name="confirm" value=")[^"]+/.exec(list) ?? [];
    const asked = await read(`/campaigns/spring?confirm=${confirm}`);
    expect((await textsAt(asked, "section.confirm h1"))[0]!.text).toBe("Follow up spring");
  });

  test("a form's blank lines are no condition", async () => {
    const { harness, cookie, form_token, follow } = await openSignedIn();
    const create = async (fields: Record<string, string>) => {
      const body = new URLSearchParams({ form_token, back: "/campaigns", text: "Hi", ...fields }).toString();
      return follow(await post(harness.app, "/console/campaigns/create", body, { headers: { ...FORM, cookie } }));
    };
    await create({ name: "spring", fields: " \r\n", timezones: "\r\n" });
    expect(harness.projector.state("campaigns").named.get("spring")?.audience).toEqual({});
  });

  test("show the warning of a text without an opt-out as a bar of its own", async () => {
    const { harness, cookie, form_token, follow } = await openSignedIn();
    const body = new URLSearchParams({ form_token, back: "/campaigns", name: "spring", text: "Hi" }).toString();
    const headers = { ...FORM, cookie };
    const page = await follow(await post(harness.app, "/console/campaigns/create", body, { headers }));
    expect((await textsAt(page, ".notice [role=status]"))[0]?.text).toContain("The campaign spring was created");
    expect(await textsAt(page, ".notice:not(.warn)")).not.toMatchObject([{ text: expect.stringContaining("opt out") }]);
    expect(await textsAt(page, ".notice.warn[role=alert]")).toMatchObject([
      { text: expect.stringMatching(/^Campaign spring: Variants without a way to opt out: A\. Add .*STOP_WORDS\.$/) },
    ]);
    expect(page).toContain('aria-describedby="help-new"');
    expect(page).toContain("{{name|there}} becomes");
  });

  test("a form that does not match names the field, and says what belongs there", async () => {
    const { harness, cookie, form_token, follow } = await openSignedIn();
    const create = async (fields: Record<string, string>) => {
      const body = new URLSearchParams({ form_token, back: "/campaigns", text: "Hi", ...fields }).toString();
      return follow(await post(harness.app, "/console/campaigns/create", body, { headers: { ...FORM, cookie } }));
    };
    expect(await create({ name: "new", source: "X" })).toContain("The field source: Expected list or inbound.");
    expect(await create({ name: "New" })).toContain(
      "The field name: Expected 1 to 40 lower-case letters, digits and hyphens.",
    );
    expect(await create({ name: "new", text: " " })).toContain("The field text: Expected a text that is not blank.");
    expect(await create({ name: "new", gap_days: "x" })).toContain("The field gap days: Expected integer.");
  });

  test("a form refuses a change if the campaign was changed since the page was shown", async () => {
    const { harness, cookie, form_token, follow } = await openSignedIn();
    await harness.append("outreach", created("spring", {}));
    const page = await (await ask(harness.app, "/campaigns/spring", { headers: { cookie } })).text();
    const [, changed_at = ""] = /name="changed_at" value="([^"]+)"/.exec(page) ?? [];
    expect(page).not.toContain("saved now");
    const own = { form_token, back: "/campaigns/spring", name: "spring", all: "true", changed_at };
    const change = async (text: string) => {
      const body = new URLSearchParams({ ...own, text }).toString();
      return follow(await post(harness.app, "/console/campaigns/change", body, { headers: { ...FORM, cookie } }));
    };
    harness.now += 1_000;
    expect(await change("one")).toContain("The campaign spring was changed, for");
    const refused = await change("two");
    expect(refused).toContain("The campaign spring was changed meanwhile, so nothing was saved.");
    expect(refused).toMatch(/The message that is saved now<\/summary><pre><bdi>one</);
    expect(refused).not.toContain(`name="changed_at" value="${changed_at}"`);
    expect(harness.projector.state("campaigns").named.get("spring")?.text).toBe("one");
  });
});
