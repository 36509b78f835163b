// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { ask, type AppHarness } from "../../harness/in-process/app.ts";
import { addedOf } from "../../harness/in-process/make-recipient-and-click-events.ts";
import { oddIn } from "../../harness/unexpected-html.ts";
import { click, openConsole, pageAt, person, rowsOf, textsAt } from "../open-console.ts";

const ADA = { id: "1001", username: "ada" };
const RUN = "0193a000-0000-7000-8000-0000000000aa";
const MESSAGE = { attempt_id: "a1", run_id: RUN, recipient: ADA };

function attempted(text: string, more: Partial<typeof MESSAGE> & { template_name?: string } = {}): NewEvent {
  return { type: "DirectMessageAttempted", data: { ...MESSAGE, text, variant: "B", day: "2026-11-20", ...more } };
}

function received(message_id: string): NewEvent {
  const data = { recipient: ADA, message_id, received_at: "2099-11-20T10:00:00.000Z" };
  return { type: "DirectMessageReceived", data };
}

const SENT: NewEvent = {
  type: "DirectMessageSent",
  data: { ...MESSAGE, message_id: "m1", settled_by: "answer" },
};
const SKIPPED: NewEvent = {
  type: "DirectMessageSkipped",
  data: { run_id: RUN, recipient: ADA, reason: "suppressed" },
};
const SUPPRESSED: NewEvent = { type: "RecipientSuppressed", data: { recipient: ADA, reason: "by_hand" } };

const MESSAGES = 'section[aria-labelledby="messages"] p';

/**
 * Reads the list of reasons on a recipient's page, which says why the recipient got a message or got none: the text of
 * each by its title, such as `Consent`, and the links to the events that prove it.
 */
async function reasonsOf(page: string): Promise<Readonly<Record<string, { text: string; links: readonly string[] }>>> {
  const reasons =
    page
      .match(/<ol class="reasons">.*?<\/ol>/s)?.[0]
      .split("<li>")
      .slice(1) ?? [];
  const entries = reasons.map(async (reason) => {
    const [title] = await textsAt(reason, "h3");
    const [said] = await textsAt(reason, "div");
    const proofs = await textsAt(`<li>${reason}`, "li > p");
    return [title?.text ?? "", { text: said?.text ?? "", links: proofs.flatMap(({ links }) => links) }] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

/** Returns the entries of the page's description lists: name -> value. */
async function factsOf(page: string): Promise<Readonly<Record<string, string>>> {
  const names = await textsAt(page, "dl dt");
  const values = await textsAt(page, "dl dd");
  return Object.fromEntries(names.map(({ text }, at) => [text, values[at]?.text ?? ""]));
}

const sentencesOf = async (page: string) => (await textsAt(page, ".line .sentence")).map(({ text }) => text);

async function openWithAda(): Promise<AppHarness> {
  const harness = await openConsole();
  const imported = { recipient: { username: "ada" }, name: "Ada L", basis: "opt_in", source: "list" } as const;
  await harness.append(
    "outreach",
    { type: "RecipientAdded", data: { ...imported, fields: { company: "Acme & Co" } } },
    person("bob"),
    attempted("Hi Ada,\nlook at https://go.example/a", { template_name: "Autumn invite" }),
    { type: "DirectMessageSent", data: { ...MESSAGE, message_id: "m1", settled_by: "answer" } },
    received("m2"),
  );
  return harness;
}

describe("the page of a recipient", () => {
  test("shows the status, the basis and the known fields", async () => {
    const harness = await openWithAda();
    const page = await pageAt(harness, "/people/1001");
    expect(await textsAt(page, "h1")).toMatchObject([{ text: "@ada (Ada L) Sent" }]);
    expect((await reasonsOf(page))["Consent"]).toMatchObject({ text: "Opted in; tracking unknown." });
    expect(await factsOf(page)).toMatchObject({
      "grounds for writing": "opted in, by event 1",
      variant: "B",
      source: "imported",
      id: "1001",
      handle: "@ada",
      "messages from them": "after ours",
      company: "Acme & Co",
    });
  });

  test("shows when, where and to which text they agreed, and since when tracking is denied", async () => {
    const harness = await openWithAda();
    const consent = { basis: "opt_in", consent_at: "2025-03-02", consent_source: "https://shop.example/<b>" } as const;
    await harness.append(
      "outreach",
      { type: "ConsentRecorded", data: { recipient: ADA, ...consent, consent_text: 'Yes, "news"' } },
      {
        type: "ConsentRecorded",
        data: {
          recipient: ADA,
          tracking: "denied",
          tracking_at: "2025-04-01T10:00:00.000Z",
          tracking_source: "message",
        },
      },
    );
    const page = await pageAt(harness, "/people/1001");
    expect((await factsOf(page))["grounds for writing"]).toBe("opted in, by event 6");
    expect((await reasonsOf(page))["Consent"]).toEqual({
      text: 'Opted in on 2025-03-02 at https://shop.example/<b> ("Yes, \\"news\\""); tracking denied on 1 Apr 2025, 10:00 by message.',
      links: ["/activity/6", "/api/audit/proof/6"],
    });
    expect(await oddIn(page)).toEqual([]);
  });

  test("names a recipient by handle, here and in the news, although the event has only the id", async () => {
    const harness = await openConsole();
    const recipient = { id: ADA.id };
    const suppressed: NewEvent = { type: "RecipientSuppressed", data: { recipient, reason: "by_hand" } };
    await harness.append("outreach", addedOf(ADA, { basis: "opt_in" }), suppressed);
    for (const path of ["/people/1001", "/", "/activity?show=everything"]) {
      const said = (await textsAt(await pageAt(harness, path), ".sentence")).map(({ text }) => text);
      expect([path, said]).toEqual([path, expect.arrayContaining(["An operator suppressed @ada"])]);
      expect([path, said.filter((text) => text.includes(ADA.id))]).toEqual([path, []]);
    }
  });

  test("says what suppressing and forgetting do, beside the buttons", async () => {
    const harness = await openConsole();
    await harness.append("outreach", addedOf(ADA, { basis: "opt_in" }));
    const hint = async () => (await textsAt(await pageAt(harness, "/people/1001"), ".actions > .quiet"))[0]?.text;
    const forget = "Forget: no message again, and their data is erased.";
    expect(await hint()).toBe(`Suppress: no message again, their data stays. ${forget}`);
    await harness.append("outreach", SUPPRESSED);
    expect(await hint()).toBe(forget);
  });

  test("gives the reason of a skip in the same words as the list of people", async () => {
    const harness = await openConsole();
    await harness.append("outreach", addedOf(ADA, { basis: "opt_in" }), {
      type: "DirectMessageSkipped",
      data: { run_id: RUN, recipient: ADA, reason: "cannot_receive_dm" },
    });
    const words = "cannot receive messages from us";
    expect((await factsOf(await pageAt(harness, "/people/1001")))["skipped for"]).toBe(words);
    const list = await pageAt(harness, "/people");
    expect((await rowsOf(list))[0]?.split(" | ")[3]).toBe(words);
    expect(list).toContain(`<option value="cannot_receive_dm">${words}</option>`);
  });

  test("does not show a person as skipped because a later run passed them after the message on the page", async () => {
    const harness = await openWithAda();
    const passed = { run_id: RUN, recipient: ADA, reason: "already_contacted" } as const;
    await harness.append("outreach", { type: "DirectMessageSkipped", data: passed });
    expect(await factsOf(await pageAt(harness, "/people/1001"))).not.toHaveProperty("skipped for");
    expect((await rowsOf(await pageAt(harness, "/people")))[0]?.split(" | ")[3]).toBe("–");
  });

  test("shows the exact text of each message, its variant, run and outcome", async () => {
    const harness = await openWithAda();
    const page = await pageAt(harness, "/people/1001");
    expect(await textsAt(page, "pre")).toMatchObject([{ text: "Hi Ada,\nlook at https://go.example/a" }]);
    const { Message: about } = await reasonsOf(page);
    expect(about?.text).toMatch(/^Variant B of Autumn invite, in Run …000000aa, .*: sent\./);
    expect(about?.links).toEqual(["/activity/3", "/api/audit/proof/3"]);
    expect(await textsAt(page, ".reasons div")).toContainEqual(expect.objectContaining({ links: [`/runs/${RUN}`] }));
  });

  test.each<readonly [string, readonly NewEvent[], string, Readonly<Record<string, readonly number[]>>]>([
    ["was not written to", [], "did @ada get no message", { Consent: [1], "Not contacted": [] }],
    ["was sent a message", [attempted("Hi"), SENT], "did @ada get a message", { Consent: [1], Message: [2] }],
    ["was skipped", [SKIPPED], "did @ada get no message", { Consent: [1], Skipped: [2] }],
    [
      "replied",
      [received("m0"), attempted("Hi"), SENT, received("m2")],
      "did @ada get a message",
      { Consent: [2], Message: [3], Reply: [5] },
    ],
    [
      "was suppressed",
      [attempted("Hi"), SENT, SUPPRESSED],
      "will @ada get no more messages",
      { Consent: [1], Message: [2], Suppressed: [4] },
    ],
    [
      "was suppressed before any message",
      [SUPPRESSED, SKIPPED],
      "will @ada get no message",
      { Consent: [1], Skipped: [3], Suppressed: [2] },
    ],
    [
      "was written to twice",
      [attempted("one"), SENT, attempted("two", { attempt_id: "a2" })],
      "did @ada get a message",
      { Consent: [1], Message: [4] },
    ],
  ])(
    "explains with events and proofs why a recipient who %s got a message or none",
    async (_what, events, question, proofs) => {
      const harness = await openConsole();
      await harness.append("outreach", addedOf(ADA, { basis: "opt_in" }), ...events);
      const page = await pageAt(harness, "/people/1001");
      const [title] = await textsAt(page, "#case");
      expect(title?.text).toBe(`Why ${question}?`);
      const reasons = await reasonsOf(page);
      expect(Object.fromEntries(Object.entries(reasons).map(([name, { links }]) => [name, links]))).toEqual(
        Object.fromEntries(
          Object.entries(proofs).map(([name, positions]) => [
            name,
            positions.flatMap((position) => [`/activity/${position}`, `/api/audit/proof/${position}`]),
          ]),
        ),
      );
    },
  );

  test("lists the events of this recipient only, newest first", async () => {
    const harness = await openWithAda();
    const sentences = await sentencesOf(await pageAt(harness, "/people/1001"));
    expect(sentences).toEqual([
      "@ada wrote to us",
      "Sent to @ada",
      "Sending to @ada (variant B)",
      "An operator imported @ada",
    ]);
  });

  test.each(["/people/@ada", "/people/ada", "/people/%40ADA"])("is found by the handle: %s", async (path) => {
    const harness = await openWithAda();
    expect(await pageAt(harness, path)).toContain("Hi Ada");
  });

  test("is linked from the list of people", async () => {
    const harness = await openWithAda();
    const page = await pageAt(harness, "/people");
    expect((await textsAt(page, "tbody th")).map(({ links }) => links)).toEqual([["/people/1001"], ["/people/@bob"]]);
    expect(await rowsOf(page)).toHaveLength(2);
  });

  test("links to the event that proves the basis", async () => {
    const harness = await openConsole();
    const wrote = { recipient: ADA, message_id: "m0", received_at: "2026-11-20T10:00:00.000Z" };
    await harness.append(
      "outreach",
      { type: "DirectMessageReceived", data: wrote },
      person("ada"),
      person("bob", "none"),
      {
        type: "RecipientAdded",
        data: { recipient: { username: "bob" }, fields: { city: "Rome" }, blank: [], source: "list" },
      },
    );
    const page = await pageAt(harness, "/people/1001");
    expect((await factsOf(page))["grounds for writing"]).toBe("wrote first, by event 1");
    expect((await textsAt(page, "dl dd")).flatMap(({ links }) => links)).toEqual(["/activity/1"]);
    const bob = await factsOf(await pageAt(harness, "/people/@bob"));
    expect(bob).toMatchObject({
      "grounds for writing": "no consent, by event 3",
      "messages from them": "none was read",
      id: "not known yet",
    });
  });

  test("shows messages that failed or are in doubt", async () => {
    const harness = await openConsole();
    const failure = { reason: "recipient_closed", detail: "403", frees_quota: true, retry: false } as const;
    await harness.append(
      "outreach",
      attempted("one"),
      { type: "DirectMessageFailed", data: { ...MESSAGE, ...failure } },
      attempted("two", { attempt_id: "a2" }),
      { type: "DirectMessageInDoubt", data: { ...MESSAGE, attempt_id: "a2", detail: "" } },
      attempted("three", { attempt_id: "a3" }),
    );
    const page = await pageAt(harness, "/people/1001");
    expect((await reasonsOf(page))["Message"]?.text).toContain(": its outcome is not known yet.");
    const about = await textsAt(page, MESSAGES);
    expect(about.map(({ text }) => text.replace(/.*; /, ""))).toEqual(["in doubt.", "failed, recipient closed."]);
  });

  test("shows the newest 200 events, and links to older ones", async () => {
    const harness = await openConsole();
    const rows = Array.from({ length: 450 }, () => person("ada"));
    await harness.append("outreach", ...rows, person("bob"));
    const first = await pageAt(harness, "/people/@ada");
    expect(await sentencesOf(first)).toHaveLength(200);
    expect(first).toContain('<a href="/people/%40ada?before=251">250 older events</a>');
    expect(await sentencesOf(await pageAt(harness, "/people/@ada?before=251"))).toHaveLength(200);
    const last = await pageAt(harness, "/people/@ada?before=51");
    expect(await sentencesOf(last)).toHaveLength(50);
    expect(last).not.toContain("older events");
    expect(first.length).toBeLessThan(200_000);
  });

  test("shows the clicks on the links sent to the recipient, and who else got them", async () => {
    const harness = await openConsole();
    const sendOf = (attempt_id: string, recipient: typeof ADA, text: string): NewEvent[] => [
      attempted(text, { attempt_id, recipient }),
      { type: "DirectMessageSent", data: { ...MESSAGE, attempt_id, recipient, message_id: "m", settled_by: "answer" } },
    ];
    await harness.append(
      "outreach",
      ...sendOf("a1", ADA, "see https://go.example/ada and go.example/all"),
      ...sendOf("a2", { id: "1002", username: "bob" }, "see go.example/all"),
      attempted("see go.example/unsent", { attempt_id: "a3" }),
    );
    await harness.append("link-go.example/ada", click("ada"), click("ada"), click("ada", true));
    const [untracked] = await rowsOf(await pageAt(harness, "/people/1001"));
    expect(untracked).toBe("go.example/ada | to them alone | not shown, since they did not grant tracking");
    await harness.append("outreach", {
      type: "ConsentRecorded",
      data: { recipient: ADA, tracking: "granted", tracking_source: "form" },
    });
    const page = await pageAt(harness, "/people/1001");
    const [ada, all] = await rowsOf(page);
    // Both clicks came soon after the message. The service counts either both as clicks by people, or both as suspected
    // fetches by X.
    expect(ada).toMatch(/^go\.example\/ada \| to them alone \| (2 \| 0|0 \| 2) \| 1$/);
    expect(all).toBe("go.example/all | to 2 people | 0 | 0 | 0");
    expect(await textsAt(page, "tbody th")).toMatchObject([
      { links: ["/links/go.example/ada"] },
      { links: ["/links/go.example/all"] },
    ]);
  });

  test("says that they got a link of their own in place of a shared one", async () => {
    const harness = await openConsole();
    const { data } = attempted("see go.example/secret") as NewEvent<"DirectMessageAttempted">;
    const links = ["go.example/all"];
    const own = { personal_links: [{ code: "secret", link: "go.example/all" }], links, replaced_links: links };
    await harness.append("outreach", { type: "DirectMessageAttempted", data: { ...data, ...own } }, SENT);
    const sentTo = async () => (await rowsOf(await pageAt(harness, "/people/1001"))).map((row) => row.split(" | ")[1]);
    expect(await sentTo()).toEqual(["to them as a link of their own"]);
    for (const id of ["1002", "1003"]) {
      const message = { ...MESSAGE, attempt_id: id, recipient: { id, username: `user_${id}` } };
      await harness.append(
        "outreach",
        { type: "DirectMessageAttempted", data: { ...data, ...message, links } },
        { type: "DirectMessageSent", data: { ...message, message_id: "m", settled_by: "answer" } },
      );
    }
    expect(await sentTo()).toEqual(["to them as a link of their own, and to 2 other people"]);
  });

  test("counts clicks on personal links, and separately those that may be X itself", async () => {
    const harness = await openConsole();
    const own = { personal_links: [{ code: "secret", link: "go.example/all" }], links: ["go.example/all"] };
    const { data } = attempted("see go.example/secret") as NewEvent<"DirectMessageAttempted">;
    await harness.append(
      "outreach",
      { type: "DirectMessageAttempted", data: { ...data, ...own } },
      { type: "PersonalLinkClicked", data: { code: "secret" } },
      { type: "DirectMessageSent", data: { ...MESSAGE, message_id: "m", settled_by: "answer" } },
    );
    const clicks = async () => (await reasonsOf(await pageAt(harness, "/people/1001")))["Clicks"]?.text;
    expect(await clicks()).toBe("0 on links of their own; 1 more may be X itself, and are not counted as theirs.");
    await harness.append("outreach", {
      type: "ConsentRecorded",
      data: { recipient: ADA, tracking: "denied", tracking_source: "message" },
    });
    expect(await clicks()).toBeUndefined();
  });

  test("credits clicks and replies to the message that they follow, and not to a later one", async () => {
    const clock = { now: Date.parse("2026-11-20T10:00:00.000Z") };
    const harness = await openConsole({ logClock: () => clock.now });
    const { data } = attempted("see go.example/secret") as NewEvent<"DirectMessageAttempted">;
    const own = { personal_links: [{ code: "secret", link: "go.example/all" }], links: ["go.example/all"] };
    await harness.append("outreach", { type: "DirectMessageAttempted", data: { ...data, ...own } }, SENT);
    clock.now += 60_000;
    await harness.append("outreach", { type: "PersonalLinkClicked", data: { code: "secret" } });
    const first = await reasonsOf(await pageAt(harness, "/people/1001"));
    expect(first["Clicks"]?.text).toBe("1 on links of their own, the first 1 min after the message.");
    clock.now += 86_400_000;
    await harness.append(
      "outreach",
      { type: "DirectMessageAttempted", data: { ...data, attempt_id: "a2", campaign: "follow-up", text: "Any news?" } },
      { type: "DirectMessageSent", data: { ...MESSAGE, attempt_id: "a2", message_id: "m2", settled_by: "answer" } },
      {
        type: "DirectMessageReceived",
        data: { recipient: ADA, message_id: "m3", received_at: "2026-11-20T11:00:00.000Z" },
      },
    );
    const page = await pageAt(harness, "/people/1001");
    expect(Object.keys(await reasonsOf(page))).toEqual(["Consent", "Message"]);
    const [earlier] = await textsAt(page, MESSAGES);
    expect(earlier?.text).toEndWith("; sent. Clicks: 1 on links of their own, the first 1 min after the message.");
    await harness.append("outreach", received("m4"));
    expect(Object.keys(await reasonsOf(await pageAt(harness, "/people/1001")))).toEqual([
      "Consent",
      "Message",
      "Reply",
    ]);
  });

  test("shows for an erased recipient only that", async () => {
    const harness = await openWithAda();
    const { hashesOf } = harness.deps;
    const hashes = [...hashesOf({ id: "2002" }), ...hashesOf({ username: "eve" })];
    await harness.append("outreach", { type: "PersonForgotten", data: { hashes, keys: ["k"] } });
    for (const name of ["2002", "@eve", "EVE"]) {
      const page = await pageAt(harness, `/people/${name}`);
      expect(await textsAt(page, "h1")).toMatchObject([{ text: "Erased or hashed" }]);
      expect(await textsAt(page, ".events, main dl, pre")).toEqual([]);
    }
    expect(await pageAt(harness, "/people/2002?as_of=5", 404)).toContain("The log has no person called");
  });

  test.each(["/people/2002", "/people/@eve", "/people/erased:01", `/people/${encodeURIComponent("<b>\u202e")}`])(
    "says that an unknown recipient is unknown: %s",
    async (path) => {
      const harness = await openWithAda();
      const page = await pageAt(harness, path, 404);
      expect(page).toContain("The log has no person called");
      expect((await textsAt(page, "main p")).flatMap(({ links }) => links)).toEqual([
        expect.stringMatching(/^\/people\?search=[^@]/),
        "/people",
      ]);
      expect(await oddIn(page)).toEqual([]);
      expect(page).not.toContain("\u202e");
    },
  );

  test("does not exist for an invalid encoding or a longer path", async () => {
    const harness = await openWithAda();
    for (const path of ["/people/%ff", "/people/1001/x"]) {
      expect([path, (await ask(harness.app, path)).status]).toEqual([path, 404]);
    }
  });
});

const HOSTILE = `<img src=x onerror=alert(1)>"'></bdi></pre><script>alert(1)</script>\u202e\u0000javascript:alert(1)`;

test.each([
  ["markup, handlers and directions", HOSTILE],
  ["4,000 characters", "<&\"'\u202e".repeat(800)],
  ["one long word", "x".repeat(4_000)],
  ["links", `https://evil.example/${HOSTILE.slice(0, 10)} javascript://x/y //evil.example/z go.example/../../audit`],
])("texts of strangers are escaped in each field: %s", async (_what, text) => {
  const harness = await openConsole();
  const recipient = { id: "1001", username: text };
  const added = { recipient, name: text, basis: "none", fields: { [text]: text }, source: "list" } as const;
  const message = { attempt_id: text, run_id: text, recipient };
  await harness.append(
    "outreach",
    { type: "RecipientAdded", data: added },
    { type: "DirectMessageAttempted", data: { ...message, text, variant: text, day: text } },
    { type: "DirectMessageSent", data: { ...message, message_id: text, settled_by: "answer" } },
    { type: "DirectMessageReceived", data: { recipient, message_id: text, received_at: text } },
  );
  const page = await pageAt(harness, "/people/1001");
  expect(await oddIn(page)).toEqual([]);
  // oxlint-disable-next-line no-control-regex
  expect(page).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u0000]/);
  expect(await textsAt(page, "pre")).toHaveLength(1);
});
