// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { NEWEST_MAX } from "../../../projections/messages-by-link.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { oddIn } from "../../harness/unexpected-html.ts";
import { click, openConsole, pageAt, rowsOf, textsAt } from "../open-console.ts";
import { addedOf, clickOf } from "../../harness/in-process/make-recipient-and-click-events.ts";

interface Sending {
  readonly recipient?: { readonly id: string; readonly username: string };
  readonly variant?: string;
  readonly template?: string;
  readonly link?: string;
  /** True if the message has a link of the recipient's own in place of the link. */
  readonly isReplaced?: boolean;
}

let attempts = 0;

/** Builds the events of a message that contains a link and that the network accepted. */
function sent({ recipient = { id: "1001", username: "ada" }, variant = "A", ...more }: Sending = {}): NewEvent[] {
  const { template = "t1", link = "go.example/x", isReplaced = false } = more;
  const own = { personal_links: [{ code: `own${attempts}`, link }], replaced_links: [link] };
  const message = { attempt_id: `a${attempts++}`, run_id: "r1", recipient };
  const data = {
    ...message,
    text: "Hi",
    links: [link],
    variant,
    template,
    template_name: "Autumn invite",
    day: "2026-11-20",
    ...(isReplaced ? own : {}),
  };
  return [
    { type: "DirectMessageAttempted", data },
    { type: "DirectMessageSent", data: { ...message, message_id: "m", settled_by: "answer" } },
  ];
}

describe("the page of links", () => {
  test("counts all clicks since the beginning, or those of a range that the log still counts by link", async () => {
    const clock = { now: 0 };
    const harness = await openConsole({ logClock: () => clock.now });
    const clicks = async (time: string, ...codes: string[]) => {
      harness.now = clock.now = Date.parse(`2026-11-${time}:00.000Z`);
      for (const code of codes) await harness.append(`link-go.example/${code}`, click(code));
    };
    await clicks("21T10:00", "a", "a", "a", "b");
    await clicks("29T05:00", "b", "b", "c", "c", "c");
    await clicks("30T12:00", "b", "a");
    const shown = async (query: string) => {
      const page = await pageAt(harness, `/links${query}`);
      const rows = (await rowsOf(page)).filter((row) => row.startsWith("go.example"));
      return [/The table counts [^.;<]*/.exec(page)?.[0], rows.map((row) => row.split(" | ").slice(0, 2).join(" "))];
    };
    const all = "The table counts all clicks since the beginning";
    const everything = ["go.example/a 4", "go.example/b 4", "go.example/c 3"];
    expect(await shown("?sort=link")).toEqual([all, everything]);
    expect(await shown("?sort=link&range=30d")).toEqual([all, everything]);
    const range = "from=2026-11-29&to=2026-11-29";
    const ofRange = "The table counts the clicks of the chart's range";
    expect(await shown(`?${range}`)).toEqual([ofRange, ["go.example/c 3", "go.example/b 2"]]);
    expect(await shown("?range=24h")).toEqual([ofRange, ["go.example/a 1", "go.example/b 1"]]);
    const page = await pageAt(harness, "/links?sort=link");
    const tabs = await textsAt(page, ".tabs li");
    expect(tabs[2]).toEqual({ text: "Yesterday", links: [`/links?sort=link&amp;${range.replace("&", "&amp;")}`] });
    // The link to a link's page keeps the range of days that the list has.
    const [, link = ""] = /href="(\/links\/go\.example\/c[^"]*)"/.exec(await pageAt(harness, `/links?${range}`)) ?? [];
    expect(link.replaceAll("&amp;", "&")).toBe(`/links/go.example/c?${range}`);
    expect(await pageAt(harness, link.replaceAll("&amp;", "&"))).toContain("<b>3</b>");
  });

  test("lists links, the most clicked first, and each link's page shows its clicks", async () => {
    const harness = await openConsole();
    await harness.append("link-go.example/a", click("a"));
    await harness.append("link-go.example/b", click("b"), click("b", true), click("b", false, "203.0.113.2"));
    const page = await pageAt(harness, "/links");
    const rows = await rowsOf(page);
    expect(rows.filter((row) => row.startsWith("go.example")).map((row) => row.slice(0, 24))).toEqual([
      "go.example/b | 2 | 0 | 1",
      "go.example/a | 1 | 0 | 0",
    ]);
    const link = await pageAt(harness, "/links/go.example/b");
    expect(link).toContain("2 clicks by people, 0 suspected, 1 by bots");
    expect(link).toContain("2 different visitors");
    const clicks = await textsAt(link, ".line .sentence");
    expect(clicks.map(({ text }) => text.slice(0, 16))).toEqual([
      "A person clicked",
      "A bot clicked go",
      "A person clicked",
    ]);
  });

  test("shows the conversions of each link, with their value by currency", async () => {
    const harness = await openConsole();
    await harness.append("link-go.example/a", click("a"), click("b"));
    const sale = { name: "Purchase", occurred_at: "2026-11-20T10:00:00.000Z", channels: [] };
    const unattributed: NewEvent = { type: "ConversionRecorded", data: { ...sale, value: 100, currency: "EUR" } };
    await harness.append("requests", unattributed);
    expect(await pageAt(harness, "/links")).not.toContain("conversions");
    const ofA = { ...sale, domain: "go.example", short_code: "a", click: 1 };
    await harness.append(
      "link-go.example/a",
      { type: "ConversionRecorded", data: { ...ofA, value: 2490, currency: "EUR" } },
      { type: "ConversionRecorded", data: { ...ofA, value: 500, currency: "JPY" } },
      { type: "ConversionReversed", data: { ...ofA, value: -490, currency: "EUR" } },
    );
    const rows = await rowsOf(await pageAt(harness, "/links"));
    const ends = rows.filter((row) => row.startsWith("go.example")).map((row) => row.split(" | ").slice(4, 6));
    expect(ends).toHaveLength(2);
    expect(ends).toContainEqual(["0", "–"]);
    expect(ends).toContainEqual(["2", "20.00 EUR, 500 JPY"]);
    const link = await pageAt(harness, "/links/go.example/a");
    expect(link).toContain("2 conversions, 1 reversed; value 20.00 EUR, 500 JPY.");
    expect(await pageAt(harness, "/links/go.example/b")).not.toContain("conversion");
  });

  test("counts two spellings of a link from an older version as one", async () => {
    const harness = await openConsole();
    await harness.append("link-GO.example/b", clickOf({ domain: "GO.example", short_code: "b", ip: "203.0.113.1" }));
    await harness.append("link-go.example/b", clickOf({ short_code: "b", ip: "::ffff:203.0.113.1" }));
    const rows = await rowsOf(await pageAt(harness, "/links"));
    expect(rows.filter((row) => /^go\.example/i.test(row)).map((row) => row.slice(0, 20))).toEqual([
      "go.example/b | 2 | 0",
    ]);
    const link = await pageAt(harness, "/links/GO.example/b");
    expect(link).toContain("2 clicks by people, 0 suspected, 0 by bots");
    expect(link).toContain("1 different visitor");
    expect((await textsAt(link, ".line .sentence")).length).toBe(2);
    expect(link).toContain("link-GO.example%2Fb");
  });

  test("sorts by each column, and marks the sorted column", async () => {
    const harness = await openConsole();
    const three = [click("a"), click("a", false, "203.0.113.2"), click("a", false, "203.0.113.3")];
    await harness.append("link-go.example/a", ...three);
    await harness.append("link-go.example/b", click("b"), click("b", true), click("b", true), click("b", true));
    const namesAt = async (path: string) => (await rowsOf(await pageAt(harness, path))).map((row) => row.split(" ")[0]);
    const ofLinks = (names: readonly (string | undefined)[]) => names.filter((name) => name?.startsWith("go.example"));
    expect(ofLinks(await namesAt("/links"))).toEqual(["go.example/a", "go.example/b"]);
    for (const column of ["people", "link"]) {
      const up = await namesAt(`/links?sort=${column}`);
      expect(ofLinks(up)).toEqual(
        column === "link" ? ["go.example/a", "go.example/b"] : ["go.example/b", "go.example/a"],
      );
      expect(ofLinks(await namesAt(`/links?sort=${column}&order=descending`))).toEqual(ofLinks(up).toReversed());
    }
    expect(ofLinks(await namesAt("/links?sort=link&after=go.example/a&value=go.example/a"))).toEqual(["go.example/b"]);
    expect(ofLinks(await namesAt("/links?sort=nonsense"))).toEqual(["go.example/a", "go.example/b"]);
    const page = await pageAt(harness, "/links?sort=bots&order=descending");
    const [bots] = await textsAt(page, "th[aria-sort]");
    expect(ofLinks(await namesAt("/links?sort=bots&order=descending"))).toEqual(["go.example/b", "go.example/a"]);
    expect(bots).toEqual({ text: "bots", links: ["/links?sort=bots&amp;order=ascending"] });
    expect((await textsAt(page, ".tall thead th")).flatMap(({ links }) => links)).toHaveLength(5);
  });

  test("says that a link has no clicks", async () => {
    const harness = await openConsole();
    expect(await pageAt(harness, "/links/unknown/x")).toContain("This link has no clicks yet");
  });
});

describe("the page of a link", () => {
  test("shows the recipients who got it, with their variants, also before a click", async () => {
    const harness = await openConsole();
    const bob = { id: "1002", username: "bob" };
    await harness.append(
      "outreach",
      ...sent(),
      ...sent({ recipient: bob, variant: "B" }),
      ...sent({ link: "other/x" }),
    );
    for (const path of ["/links/go.example/x", "/links/GO.example/x"]) {
      const page = await pageAt(harness, path);
      expect(page).toContain("This link has no clicks yet");
      const rows = (await rowsOf(page)).map((row) => row.replace(/ \| [^|]*:\d\d$/, ""));
      expect(rows).toEqual(["@bob | B", "@ada | A"]);
      const people = (await textsAt(page, "tbody th")).flatMap(({ links }) => links);
      expect(people).toEqual(["/people/1002", "/people/1001"]);
      const [summary] = await textsAt(page, 'section[aria-labelledby="sent-to"] p');
      expect(summary?.text).toBe("In 2 messages: 1 of variant A of Autumn invite, 1 of variant B of Autumn invite.");
    }
  });

  test("counts the messages with a link of the recipient's own in its place, whose clicks count here too", async () => {
    const harness = await openConsole();
    const said = async () => {
      const page = await pageAt(harness, "/links/go.example/x");
      const words = (await textsAt(page, 'section[aria-labelledby="sent-to"] p')).map(({ text }) => text);
      return [words, (await rowsOf(page)).length] as const;
    };
    await harness.append("outreach", ...sent({ isReplaced: true }));
    const rest = "to recipients who granted tracking, a link of their own took its place.";
    const clicks = "Clicks on those links count here too.";
    expect(await said()).toEqual([[`In 1 message ${rest} ${clicks}`], 0]);
    const bob = { id: "1002", username: "bob" };
    const eve = { id: "1003", username: "eve" };
    await harness.append("outreach", ...sent({ recipient: bob, isReplaced: true }), ...sent({ recipient: eve }));
    const summary = "In one message: 1 of variant A of Autumn invite.";
    const hidden = "Its recipient did not grant tracking, so they are not named beside the clicks.";
    expect(await said()).toEqual([[summary, `In 2 more messages ${rest} ${clicks}`, hidden], 0]);
  });

  test("counts all its messages and shows the newest", async () => {
    const harness = await openConsole();
    const many = Array.from({ length: NEWEST_MAX + 10 }, () => sent()).flat();
    await harness.append("outreach", ...many);
    const page = await pageAt(harness, "/links/go.example/x");
    expect(page).toContain(`In ${NEWEST_MAX + 10} messages`);
    expect(page).toContain(`The newest ${NEWEST_MAX}:`);
    expect(await rowsOf(page)).toHaveLength(NEWEST_MAX);
  });

  test("counts its clicks by hour or day, by people apart from suspected ones, and names the best hour", async () => {
    const clock = { now: 0 };
    const harness = await openConsole({ logClock: () => clock.now });
    const at = (time: string) => (harness.now = clock.now = Date.parse(`2026-11-${time}:00.000Z`));
    const people = (count: number) => Array.from({ length: count }, (_, nth) => click("x", false, `203.0.113.${nth}`));
    const clicked = (...events: NewEvent[]) => harness.append("link-go.example/x", ...events);
    at("28T09:10");
    await clicked(...people(4));
    at("28T09:40");
    await clicked(...people(3));
    // X fetches the link of a message several times right after the message, which must not count as clicks by people.
    at("30T14:05");
    await harness.append("outreach", ...sent());
    await clicked(...people(5));
    at("30T14:50");
    await clicked(...people(2), click("x", true));
    at("30T20:00");
    await clicked(...people(1));
    at("30T23:30");
    const days = await pageAt(harness, "/links/go.example/x");
    expect(await legendOf(days)).toEqual(["people 10", "suspected 5", "bots 1"]);
    expect(await sentenceOf(days)).toBe("Most clicks by people: Sat 28 Nov, 09:00–10:00, 7.");
    const hours = await pageAt(harness, "/links/go.example/x?range=24h");
    expect(await legendOf(hours)).toEqual(["people 3", "suspected 5", "bots 1"]);
    expect(await sentenceOf(hours)).toBe("Most clicks by people: Mon 30 Nov, 14:00–15:00, 2.");
    expect((await rowsOf(hours)).find((row) => row.startsWith("30 Nov, 14:00"))).toBe("30 Nov, 14:00 | 2 | 5 | 1");
    const ranges = (await textsAt(hours, ".tabs li")).map(({ links: [href] }) => href);
    expect(ranges[4]).toBe("/links/go.example/x?range=30d");
    at("30T20:10");
    await clicked(...people(1));
    expect(await sentenceOf(await pageAt(harness, "/links/go.example/x?range=24h"))).toBe(
      "Most clicks by people: Mon 30 Nov, 20:00–21:00, 2; as many in 1 other hour.",
    );
  });

  test("says that no message contained it", async () => {
    const harness = await openConsole();
    await harness.append("link-go.example/x", click("x"));
    expect(await pageAt(harness, "/links/go.example/x")).toContain("No message contained it.");
  });

  test("shows erased recipients as erased, without a link", async () => {
    const harness = await openConsole();
    await harness.append("outreach", ...sent({ recipient: { id: "erased:01", username: "erased:01" } }), ...sent());
    const [, person] = await textsAt(await pageAt(harness, "/links/go.example/x"), "tbody th");
    expect(person).toEqual({ text: "erased", links: [] });
  });

  test.each([
    ["granted", true],
    ["denied", false],
    ["unknown", false],
  ] as const)("names the recipient of a single message only if tracking is granted: %s", async (tracking, isNamed) => {
    const harness = await openConsole();
    await harness.append("outreach", addedOf({ id: "1001", username: "ada" }, { tracking }), ...sent());
    const page = await pageAt(harness, "/links/go.example/x");
    expect(page.includes("@ada")).toBe(isNamed);
    expect(page.includes("did not grant tracking")).toBe(!isNamed);
  });
});

const legendOf = async (page: string) => (await textsAt(page, ".legend li")).map(({ text }) => text);

/** Finds the sentence about the hour with the most clicks in the HTML of a page; undefined if the page has none. */
async function sentenceOf(page: string): Promise<string | undefined> {
  return (await textsAt(page, "main p")).find(({ text }) => text.startsWith("Most clicks"))?.text;
}

const HOSTILE = `<img src=x onerror=alert(1)>"'></bdi><script>alert(1)</script>\u202e\u0000javascript:alert(1)`;

test.each([HOSTILE, "<&\"'\u202e".repeat(800)])("texts of strangers are escaped in each field", async (text) => {
  const harness = await openConsole();
  const recipient = { id: text, username: text };
  await harness.append(
    "outreach",
    ...sent({ recipient, variant: text, template: text, link: `${text.toLowerCase()}/${text}` }),
  );
  const path = `/links/${encodeURIComponent(text)}/${encodeURIComponent(text)}`;
  const page = await pageAt(harness, path);
  expect(await oddIn(page)).toEqual([]);
  // oxlint-disable-next-line no-control-regex
  expect(page).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u0000]/);
});
