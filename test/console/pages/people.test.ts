// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { dropReplacedUpTo } from "../../../projections/contact-changes-to-rewind.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { PEOPLE_SHOWN } from "../../../src/console/pages/people.tsx";
import { ask, post, type AppHarness } from "../../harness/in-process/app.ts";
import { click, openConsole, openSignedIn, pageAt, person, rowsOf, textsAt } from "../open-console.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };

const ADA = { id: "1786543210987654321", username: "ada" };
const BOB = { id: "1786543210987654322", username: "bob" };

function attempted(recipient: typeof ADA, variant: string): NewEvent {
  const data = { attempt_id: `a-${recipient.id}`, run_id: "r1", recipient, text: "Hi", variant, day: "2026-03-01" };
  return { type: "DirectMessageAttempted", data };
}

function failed(recipient: typeof ADA): NewEvent {
  const data = {
    attempt_id: `a-${recipient.id}`,
    run_id: "r1",
    recipient,
    detail: "",
    frees_quota: true,
    retry: false,
  };
  return { type: "DirectMessageFailed", data: { ...data, reason: "recipient_closed" } };
}

function skipped(username: string, reason: "no_consent" | "protected"): NewEvent {
  return { type: "DirectMessageSkipped", data: { run_id: "r1", recipient: { username }, reason } };
}

const wrote: NewEvent = {
  type: "DirectMessageReceived",
  data: { recipient: { id: "7", username: "dan" }, message_id: "m", received_at: "2026-03-01T08:00:00.000Z" },
};

const countsOf = async (page: string) => (await textsAt(page, ".tabs li")).map(({ text }) => text);

async function openWithPeople(): Promise<AppHarness> {
  const harness = await openConsole();
  await harness.append(
    "outreach",
    person("ada"),
    person("bob"),
    person("cid", "none"),
    attempted(ADA, "A"),
    attempted(BOB, "B"),
    failed(BOB),
    skipped("cid", "no_consent"),
    wrote,
    skipped("eve", "protected"),
  );
  return harness;
}

describe("the page of people", () => {
  test.each([
    ["", ["@ada", "@bob", "@cid", "@dan", "@eve"]],
    ["status=failed", ["@bob"]],
    ["basis=none", ["@cid", "@eve"]],
    ["basis=dm_first", ["@dan"]],
    ["skipped=no_consent", ["@cid"]],
    ["variant=A", ["@ada"]],
    ["variant=B&status=failed", ["@bob"]],
    ["source=imported", ["@ada", "@bob", "@cid"]],
    ["source=wrote_first", ["@dan"]],
    ["source=met", ["@eve"]],
    ["source=nonsense", ["@ada", "@bob", "@cid", "@dan", "@eve"]],
    ["search=1786543210987654322", ["@bob"]],
    ["search=D", ["@ada", "@cid", "@dan"]],
    ["search=a.a", []],
  ])("with ?%s shows %j", async (query, names) => {
    const harness = await openWithPeople();
    const rows = await rowsOf(await pageAt(harness, `/people?${query}`));
    expect(rows.map((row) => row.split(" ")[0])).toEqual(names);
  });

  test("counts the matches by status, and links to each status", async () => {
    const harness = await openWithPeople();
    const counts = [
      "not contacted yet 1",
      "being contacted 1",
      "in doubt 0",
      "sent 0",
      "failed 1",
      "suppressed 0",
      "reply held 0",
    ];
    expect(await countsOf(await pageAt(harness, "/people?source=imported"))).toEqual(["all 3", ...counts]);
    const page = await pageAt(harness, "/people?source=imported&status=failed");
    expect(await countsOf(page)).toEqual(["all 3", ...counts]);
    expect(page).toContain("1 of 5 people");
    const [, open] = await textsAt(page, ".tabs li");
    expect(open?.links.map((link) => link.replaceAll("&amp;", "&"))).toEqual(["/people?source=imported&status=open"]);
    expect(page).toContain('<a href="/people?source=imported&amp;status=failed" aria-current="true">');
  });

  test("continues after the last recipient of the previous page, despite changes before them", async () => {
    const harness = await openConsole();
    const many = Array.from({ length: PEOPLE_SHOWN + 2 }, (_, at) => person(`p_${at}`));
    await harness.append("outreach", ...many);
    const first = await pageAt(harness, "/people?status=open");
    const next = /href="(\/people\?[^"]*after[^"]*)"/.exec(first)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const suppressed = { recipient: { username: "p_3" }, reason: "by_hand" } as const;
    await harness.append("outreach", { type: "RecipientSuppressed", data: suppressed });
    const page = await pageAt(harness, next);
    expect((await rowsOf(page)).map((row) => row.split(" ")[0])).toEqual(["@p_8", "@p_9"]);
    expect(page).toContain('<a href="/people?status=open">First people</a>');
    expect(page).not.toContain("More people");
  });

  test.each([
    ["person", "descending", ["@eve", "@dan", "@cid", "@bob", "@ada"]],
    ["status", "ascending", ["@dan", "@cid", "@eve", "@ada", "@bob"]],
    ["basis", "ascending", ["@dan", "@ada", "@bob", "@cid", "@eve"]],
    ["skipped", "descending", ["@eve", "@cid", "@dan", "@ada", "@bob"]],
    ["message", "ascending", ["@ada", "@dan", "@bob", "@cid", "@eve"]],
    ["nonsense", "descending", ["@ada", "@bob", "@cid", "@dan", "@eve"]],
  ])("is sorted by %s, %s: %j", async (by, order, names) => {
    const harness = await openWithPeople();
    const page = await pageAt(harness, `/people?source=&sort=${by}&order=${order}`);
    // Recipients with equal values are sorted by their key. The key with an id comes before the one with a handle.
    expect((await rowsOf(page)).map((row) => row.split(" ")[0])).toEqual(names);
  });

  test("has column heads that sort it, mark the order, and keep the filter", async () => {
    const harness = await openWithPeople();
    const page = await pageAt(harness, "/people?source=imported&sort=message&order=descending");
    expect(await textsAt(page, 'th[aria-sort="descending"]')).toEqual([
      { text: "last message", links: ["/people?source=imported&amp;sort=message&amp;order=ascending"] },
    ]);
    const heads = await textsAt(page, ".tall thead th");
    expect(
      heads.map(({ links }) =>
        /sort=(\w+)&amp;order=(\w+)$/
          .exec(links[0] ?? "")
          ?.slice(1)
          .join(" "),
      ),
    ).toEqual(["person ascending", "status ascending", "basis ascending", "skipped ascending", "message ascending"]);
    expect(page).toContain('<input type="hidden" name="sort" value="message"/>');
  });

  test("offers the actions for a recipient if only one matches", async () => {
    const harness = await openWithPeople();
    const summaries = async (query: string) =>
      (await textsAt(await pageAt(harness, `/people?${query}`), ".actions > [data-dialog]")).map(({ text }) => text);
    expect(await summaries("search=bob")).toEqual(["Suppress", "Retry", "Forget", "Record consent"]);
    expect(await summaries("search=ada")).toEqual(["Suppress", "Forget", "Record consent"]);
    expect(await summaries("")).toEqual([]);
  });
});

describe("the actions on a recipient", () => {
  async function act(
    { harness, cookie, form_token }: Awaited<ReturnType<typeof openSignedIn>>,
    action: string,
    recipient: string,
    { back = `/people/${BOB.id}`, ...more }: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const body = new URLSearchParams({ form_token, back, recipient, ...more }).toString();
    return post(harness.app, `/console/recipients/${action}`, body, { headers: { ...FORM, cookie } });
  }

  test("are explained on the recipient's page before they are confirmed", async () => {
    const harness = await openWithPeople();
    const page = await pageAt(harness, "/people/@bob");
    const [suppress, retry, forget] = await textsAt(page, ".actions dialog");
    expect(suppress?.text).toContain("@bob never gets a message again");
    expect(retry?.text).toContain("The next run tries once more");
    expect(forget?.text).toContain(
      "This cannot be undone. Data at X, in chats, at Meta and in backups of the key file is not erased.",
    );
    expect(page).toContain(`<input type="hidden" name="recipient" value="${BOB.id}"/>`);
    expect(page).toContain(`<input type="hidden" name="back" value="/people/${BOB.id}"/>`);
  });

  test("suppress the recipient, and refuse a retry after that", async () => {
    const world = await openSignedIn();
    await world.harness.append("outreach", person("bob"), attempted(BOB, "A"), failed(BOB));
    expect(await world.follow(await act(world, "suppress", BOB.id))).toContain(
      "The recipient never gets a message again.",
    );
    expect(await world.follow(await act(world, "retry", BOB.id))).toContain(
      'role="alert">This recipient is suppressed: no message is sent.',
    );
    const [event] = await world.harness.events("RecipientSuppressed");
    expect(event?.meta.caller).toBe("tests");
  });

  test("record the filled-in fields of consent, and refuse invalid ones with the reason", async () => {
    const world = await openSignedIn();
    const { harness, cookie, form_token } = world;
    await harness.append("outreach", person("bob"));
    const record = (fields: Readonly<Record<string, string>>): Promise<Response> => {
      const empty = { basis: "", consent_at: "", consent_source: "", consent_text: "", tracking: "", tracking_at: "" };
      const common = { form_token, back: "/people/@bob", recipient: "@bob" };
      const body = new URLSearchParams({ ...common, ...empty, tracking_source: "", tracking_text: "", ...fields });
      return post(harness.app, "/console/recipients/consent", body.toString(), { headers: { ...FORM, cookie } });
    };
    expect(await world.follow(await record({}))).toContain(
      'role="alert">Nothing was recorded: neither basis nor tracking is given.',
    );
    expect(await world.follow(await record({ basis: "opt_in", consent_at: "soon" }))).toContain(
      'role="alert">Nothing was recorded: consent_at is neither a day such as 2026-03-02',
    );
    expect(await harness.events("ConsentRecorded")).toEqual([]);
    const opted = { basis: "opt_in", consent_at: "2025-03-02", consent_source: "trade fair" };
    const page = await world.follow(await record(opted));
    expect(page).toContain("The consent is recorded.");
    expect((await textsAt(page, ".reasons div")).map(({ text }) => text)).toContain(
      "Opted in on 2025-03-02 by trade fair; tracking unknown.",
    );
    const recipient = { username: "bob" };
    expect(await harness.events("ConsentRecorded")).toMatchObject([
      { data: { recipient, ...opted }, meta: { caller: "tests" } },
    ]);
    expect(page).toContain('name="consent_for"');
    const withdrawn = { basis: "none", consent_for: "spring" } as const;
    const after = await world.follow(await record(withdrawn));
    expect(after).toContain("The consent is recorded. Basis: none");
    expect((await textsAt(after, ".reasons div")).map(({ text }) => text)).toContain(
      'Opted in on 2025-03-02 by trade fair; no consent for "spring" alone; tracking unknown.',
    );
    expect((await harness.events("ConsentRecorded"))[1]?.data).toEqual({ recipient, ...withdrawn });
  });

  test("allow a retry", async () => {
    const world = await openSignedIn();
    await world.harness.append("outreach", person("bob"), attempted(BOB, "A"), failed(BOB));
    expect(await world.follow(await act(world, "retry", "@bob"))).toContain("may contact the recipient again");
    expect(await world.harness.events("RecipientRetryAllowed")).toHaveLength(1);
  });

  test("allow a retry in each campaign whose message failed", async () => {
    const world = await openSignedIn();
    const inSpring = [attempted(BOB, "A"), failed(BOB)].map(
      ({ type, data }) => ({ type, data: { ...data, attempt_id: "b", campaign: "spring" } }) as NewEvent,
    );
    await world.harness.append("outreach", person("bob"), attempted(BOB, "A"), failed(BOB), ...inSpring);
    const offered = async (page: string) =>
      (await textsAt(page, ".actions > [data-dialog]")).flatMap(({ text }) => (text.startsWith("Retry") ? text : []));
    await world.harness.projector.until((await world.harness.store.head()).position);
    const before = await ask(world.harness.app, "/people/@bob", { headers: { cookie: world.cookie } });
    expect(await offered(await before.text())).toEqual(["Retry spring", "Retry"]);
    const page = await world.follow(await act(world, "retry", "@bob", { campaign: "default" }));
    expect(await offered(page)).toEqual(["Retry spring"]);
    expect(await world.harness.events("RecipientRetryAllowed")).toMatchObject([{ data: { campaign: "default" } }]);
  });

  test("release a held recipient, and the overview and the page show why", async () => {
    const world = await openSignedIn();
    const held = { recipient: BOB, message_id: "m", received_at: "2026-03-01T08:00:00.000Z" };
    await world.harness.append("outreach", person("bob"), { type: "RecipientHeld", data: held });
    const read = async (path: string) => {
      await world.harness.projector.until((await world.harness.store.head()).position);
      return (await ask(world.harness.app, path, { headers: { cookie: world.cookie } })).text();
    };
    expect(await read("/")).toContain("1 reply may ask to be left alone");
    expect(await read("/people?status=held")).toContain("reply held");
    expect(await read(`/people/${BOB.id}`)).toContain("may have asked to be left alone");
    expect(await world.follow(await act(world, "release", "@bob"))).toContain(
      "The next run may contact the recipient.",
    );
    expect(await world.harness.events("RecipientReleased")).toHaveLength(1);
    expect(await read("/")).not.toContain("may ask to be left alone");
  });

  test("forget the recipient only after the handle is typed", async () => {
    const world = await openSignedIn();
    await world.harness.append("outreach", person("bob", "opt_in", "Bob Stone"), attempted(BOB, "A"));
    for (const typed of ["", "@bo", "bob"]) {
      const refused = await world.follow(await act(world, "forget", BOB.id, { name: "@bob", confirm: typed }));
      expect(refused).toContain('role="alert">Nothing was erased: type @bob to confirm.');
    }
    expect(await world.follow(await act(world, "forget", BOB.id))).toContain("Nothing was erased");
    expect(await world.harness.events("PersonForgotten")).toEqual([]);
    const confirmed = { name: "@bob", confirm: "@bob", ground: "", requested_by: "" };
    const page = await world.follow(await act(world, "forget", BOB.id, confirmed));
    expect(page).toContain("Erased: 2 events can no longer be read");
    expect(page).toContain("<h1>Erased or hashed</h1>");
    expect(page).not.toContain("Bob Stone");
    const people = await (await ask(world.harness.app, "/people", { headers: { cookie: world.cookie } })).text();
    expect(people).not.toMatch(/bob|Bob/);
    const again = await world.follow(await act(world, "forget", BOB.id, confirmed));
    expect(again).toContain('role="alert">No recipient has that name');
  });

  test("erase the clicks of an address on the page of links", async () => {
    const world = await openSignedIn();
    await world.harness.append("link-go.example/a", click("a", false, "203.0.113.9"), click("a"));
    const erase = (ip: string): Promise<Response> => {
      const body = new URLSearchParams({ form_token: world.form_token, back: "/links", ip }).toString();
      return post(world.harness.app, "/console/clicks/forget", body, { headers: { ...FORM, cookie: world.cookie } });
    };
    expect(await world.follow(await erase("203.0.113.9"))).toContain(
      "Erased: 1 event can no longer be read, 1 key was",
    );
    expect(JSON.stringify(await world.harness.events("LinkClicked"))).not.toContain("203.0.113.9");
    expect(await world.follow(await erase("another"))).toContain('role="alert">The field ip: Expected ');
  });

  test("are missing on pages as of an earlier moment", async () => {
    const harness = await openWithPeople();
    for (const path of ["/people/@bob?as_of=4", "/people?as_of=4"]) {
      expect(await textsAt(await pageAt(harness, path), "[data-dialog], input[type=file]")).toEqual([]);
    }
  });
});

test("the list as of a moment stays the same once the changes of contacts up to then are dropped", async () => {
  const harness = await openConsole();
  await harness.append("outreach", person("ada", "none"), person("ada", "opt_in"), person("bea"));
  const rowsAt = async (asOf: number) => rowsOf(await pageAt(harness, `/people?as_of=${asOf}`));
  const before = await rowsAt(1);
  expect(before).toEqual([expect.stringContaining("no consent")]);
  const contacts = harness.projector.state("contacts");
  dropReplacedUpTo(contacts, 2);
  expect(await rowsAt(1)).toEqual(before);
});
