// On the memory harness.
import { describe, expect, test } from "bun:test";
import { dropReplacedUpTo } from "../../../projections/contacts.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { PEOPLE_SHOWN } from "../../../src/console/pages/people.tsx";
import { ask, post, problemIn, TOKEN, type AppHarness } from "../../harness/memory/app.ts";
import { oddIn } from "../../harness/page.ts";
import { click, openConsole, pageAt, person, rowsOf, textsAt } from "../pages.ts";

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

const countsOf = async (page: string) => (await textsAt(page, ".counts li")).map(({ text }) => text);

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

  test("counts those found by status, whichever status is chosen, and leads to each", async () => {
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
    const [, open] = await textsAt(page, ".counts li");
    expect(open?.links.map((link) => link.replaceAll("&amp;", "&"))).toEqual(["/people?source=imported&status=open"]);
    expect(page).toContain('<a href="/people?source=imported&amp;status=failed" aria-current="true">');
  });

  test("goes on behind the last person of the page before, whatever changed before them", async () => {
    const harness = await openConsole();
    const many = Array.from({ length: PEOPLE_SHOWN + 2 }, (_, at) => person(`p_${at}`));
    await harness.append("outreach", ...many);
    const first = await pageAt(harness, "/people?status=open");
    const next = /href="(\/people\?[^"]*after[^"]*)"/.exec(first)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const suppressed = { recipient: { username: "p_3" }, reason: "by_hand" } as const;
    await harness.append("outreach", { type: "RecipientSuppressed", data: suppressed });
    const page = await pageAt(harness, next);
    expect((await rowsOf(page)).map((row) => row.split(" ")[0])).toEqual(["@p_98", "@p_99"]);
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
    // Equal values are sorted by key: a network id before a handle.
    expect((await rowsOf(page)).map((row) => row.split(" ")[0])).toEqual(names);
  });

  test("has heads that sort it, say how it is sorted, and keep the filter", async () => {
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

  test("offers what can be done with one person where just one is found", async () => {
    const harness = await openWithPeople();
    const summaries = async (query: string) =>
      (await textsAt(await pageAt(harness, `/people?${query}`), ".actions summary")).map(({ text }) => text);
    expect(await summaries("search=bob")).toEqual(["Suppress", "Retry", "Forget", "Record consent"]);
    expect(await summaries("search=ada")).toEqual(["Suppress", "Forget", "Record consent"]);
    expect(await summaries("")).toEqual([]);
  });
});

/** A signed-in browser with the token of its forms. */
async function signIn(harness: AppHarness) {
  const signedIn = await post(harness.app, "/session", `token=${TOKEN}`, { headers: FORM });
  const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  const page = await (await ask(harness.app, "/people", { headers: { cookie } })).text();
  const form_token = /name="form_token" value="([^"]+)"/.exec(page)?.[1] ?? "";
  /** Returns the page that the form redirects to. */
  const follow = async (answer: Response): Promise<string> => {
    expect(answer.status).toBe(303);
    const notice = answer.headers.get("set-cookie")?.split(";")[0] ?? "";
    const to = answer.headers.get("location") ?? "";
    return (await ask(harness.app, to, { headers: { cookie: `${cookie}; ${notice}` } })).text();
  };
  return { cookie, form_token, follow };
}

async function openSignedIn() {
  const harness = await openConsole({ tokens: true });
  return { harness, ...(await signIn(harness)) };
}

describe("a file chosen in the browser", () => {
  async function upload(
    { harness, cookie, form_token }: Awaited<ReturnType<typeof openSignedIn>>,
    name: string,
    text: string,
    more: Readonly<Record<string, string>> = {},
    action = "/console/recipients",
  ): Promise<Response> {
    const form = new FormData();
    for (const [field, value] of Object.entries({ form_token, back: "/people", ...more })) form.set(field, value);
    form.set("file", new File([text], name));
    const sent = new Response(form);
    const headers = { cookie, "content-type": sent.headers.get("content-type") ?? "" };
    return post(harness.app, action, await sent.bytes(), { headers });
  }

  test("is taken, in the name of the signed-in operator, and answered with a report", async () => {
    const world = await openSignedIn();
    const text = "username,Product,basis\nann,tea,opt_in\nbea,cups,\nno handle,,\nANN,,opt_in\n";
    const answer = await upload(world, "people.csv", text);
    expect(answer.status).toBe(200);
    const page = await answer.text();
    expect(page).toContain("2 added, 0 updated, 1 refused.");
    expect(page).toContain("1 of them without consent");
    expect(page).toMatch(/Template fields:.*<bdi>product<\/bdi>/);
    expect(await rowsOf(page)).toEqual([
      "line 4 | no handle | username is neither a handle (1 to 15 letters, digits, underscores) nor the address of an X profile",
    ]);
    expect(page).toContain("Line 5 counts in place of line 2.");
    expect(page).not.toContain("data-position");
    const [event] = await world.harness.events("RecipientAdded");
    expect(event?.meta.caller).toBe("tests");
  });

  test("is read in the order of dates that the operator chose, and names cells that were not read as they stand", async () => {
    const world = await openSignedIn();
    const text = "username,name,basis,consent_at\nann,null,opt_in,3/2/2025\n";
    expect(await (await upload(world, "people.csv", text, { dates: "" })).text()).toContain("3/2/2025 is ambiguous");
    const page = await (await upload(world, "people.csv", text, { dates: "dmy" })).text();
    expect(page).toContain("1 added");
    expect((await textsAt(page, "section bdi")).map(({ text: note }) => note)).toEqual([
      'name: "null" on line 2 was read as a blank cell',
    ]);
    expect((await world.harness.events("RecipientAdded"))[0]?.data.consent_at).toBe("2025-02-03");
    const people = await (await ask(world.harness.app, "/people", { headers: { cookie: world.cookie } })).text();
    expect(people.match(/<select name="dates"/g)).toHaveLength(2);
  });

  test("that is a list of suppressions suppresses its people; the page has the list as a file", async () => {
    const world = await openSignedIn();
    const text = "username,reason\nann,opt_out\nbea,<i>asked</i>\nno handle,\nANN,\n";
    const page = await (await upload(world, "list.csv", text, {}, "/console/suppressions")).text();
    expect(page).toContain("2 added, 1 suppressed before, 1 refused.");
    expect(await rowsOf(page)).toEqual([expect.stringMatching(/^line 4 \| no handle \| username is neither a handle/)]);
    expect(await oddIn(page)).toEqual([]);
    expect((await world.harness.events("RecipientSuppressed"))[0]?.meta.caller).toBe("tests");
    const people = await (await ask(world.harness.app, "/people", { headers: { cookie: world.cookie } })).text();
    const links = [...people.matchAll(/<a href="(\/social\/suppressions[^"]*)" download>/g)].map(
      ([, href = ""]) => href,
    );
    expect(links).toEqual(["/social/suppressions", "/social/suppressions?hashed=true"]);
    for (const href of links) {
      const list = await (await ask(world.harness.app, href, { headers: { cookie: world.cookie } })).text();
      expect([href, list.includes("ann")]).toEqual([href, href === links[0]]);
    }
  });

  test.each([
    ["people.json", '[{"username":"ann"}]'],
    ["PEOPLE.JSONL", '{"username":"ann"}\n'],
    ["people.tsv", "username\tname\nann\tAnn"],
  ])("is read by its name: %s", async (name, text) => {
    expect(await (await upload(await openSignedIn(), name, text)).text()).toContain("1 added");
  });

  test.each([
    ["people.xlsx", "PK", "this is a workbook"],
    ["people", "username\nann", "does not end in .csv, .json or .jsonl"],
    ["people.csv", "name\nAnn", "no column is named username, handle or id"],
    ["people.csv", "", "the file is empty"],
  ])("that is no list leads back and says why: %s", async (name, text, why) => {
    const world = await openSignedIn();
    const page = await world.follow(await upload(world, name, text));
    expect((await textsAt(page, '[role="alert"]'))[0]?.text).toContain(why);
    expect((await world.harness.store.head()).position).toBe(0);
  });

  test("waits for another list, and says so", async () => {
    const world = await openSignedIn();
    const taken = Promise.withResolvers<void>();
    const other = world.harness.deps.load.whileTaking(() => taken.promise);
    const page = await world.follow(await upload(world, "people.csv", "username\nann"));
    expect((await textsAt(page, '[role="alert"]'))[0]?.text).toContain("Another list is being imported");
    taken.resolve();
    await other;
    expect((await world.harness.store.head()).position).toBe(0);
  });

  test("shows harmlessly what others wrote", async () => {
    const world = await openSignedIn();
    const odd = [
      `=HYPERLINK("http://evil.example")`,
      `+cmd|' /C calc'!A0`,
      `<script>alert(1)</script>`,
      `"><img src=x onerror=alert(1)>`,
      `\u202Egnp.exe`,
      `\u2066\u2067x`,
      "x".repeat(4_000),
      `\u001b[31mred`,
    ];
    const rows = odd.map((value) => `"${value.replaceAll('"', '""')}",none`);
    const columns = `<b>,"=1+1","\u202Ebidi"`;
    const page = await (await upload(world, "people.csv", `username,basis\n${rows.join("\n")}\nann,"<i>",`)).text();
    expect(await oddIn(page)).toEqual([]);
    expect(page).toContain("&lt;script>");
    // oxlint-disable-next-line no-control-regex
    expect(page).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u001b]/);
    expect(page.length).toBeLessThan(20_000);
    const fields = await (await upload(world, "people.csv", `username,${columns}\nann,1,2,3`)).text();
    expect(await oddIn(fields)).toEqual([]);
    // oxlint-disable-next-line no-control-regex
    expect(fields).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u001b]/);
  });

  test("that is too large is refused by a page with a way back, before all of it has come", async () => {
    const { harness, cookie } = await openSignedIn();
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(1024 * 1024)),
    });
    const headers = { cookie, "content-type": "multipart/form-data; boundary=x", accept: "text/html" };
    const answer = await post(harness.app, "/console/recipients", endless, { headers });
    expect(answer.status).toBe(413);
    const page = await answer.text();
    expect(page).toContain("The file is larger than 10 MiB. Nothing was taken");
    expect(page).toContain('<a href="/people">Back to the people</a>');
  });

  test("counts for nothing without the token of this very session, or without a file", async () => {
    const world = await openSignedIn();
    expect(await problemIn(await upload(world, "a.csv", "username\nann", { form_token: "x" }))).toBe(
      "403 foreign-site",
    );
    const other = { ...world, form_token: (await signIn(await openConsole({ tokens: true }))).form_token };
    expect(await problemIn(await upload(other, "a.csv", "username\nann"))).toBe("403 foreign-site");
    expect(await problemIn(await upload({ ...world, cookie: "" }, "a.csv", "username\nann"))).toBe("401 unauthorized");
    const form = new URLSearchParams({ form_token: world.form_token, back: "/people" }).toString();
    const asForm = await post(world.harness.app, "/console/recipients", form, {
      headers: { ...FORM, cookie: world.cookie },
    });
    expect(await problemIn(asForm)).toBe("415 unsupported-media-type");
    expect((await world.harness.store.head()).position).toBe(0);
  });

  test.each(["//evil.example", "https://evil.example"])("leads back to no page of another site: %s", async (back) => {
    const answer = await upload(await openSignedIn(), "people.csv", "", { back });
    expect(await problemIn(answer)).toBe("422 invalid-request");
  });
});

describe("what is done with one person", () => {
  async function act(
    { harness, cookie, form_token }: Awaited<ReturnType<typeof openSignedIn>>,
    action: string,
    recipient: string,
    { back = `/people/${BOB.id}`, ...more }: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const body = new URLSearchParams({ form_token, back, recipient, ...more }).toString();
    return post(harness.app, `/console/recipients/${action}`, body, { headers: { ...FORM, cookie } });
  }

  test("is asked once, in words, on their page", async () => {
    const harness = await openWithPeople();
    const page = await pageAt(harness, "/people/@bob");
    const [suppress, retry, forget] = await textsAt(page, ".actions details");
    expect(suppress?.text).toContain("@bob never gets a message again");
    expect(retry?.text).toContain("The next run tries once more");
    expect(forget?.text).toContain(
      "This cannot be undone. Data at X, in chats, at Meta and in backups of the key file is not erased.",
    );
    expect(page).toContain(`<input type="hidden" name="recipient" value="${BOB.id}"/>`);
    expect(page).toContain(`<input type="hidden" name="back" value="/people/${BOB.id}"/>`);
  });

  test("suppresses, and a retry of them is refused in words", async () => {
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

  test("records their consent, of what is filled in alone, and says what cannot be recorded", async () => {
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
  });

  test("allows a retry", async () => {
    const world = await openSignedIn();
    await world.harness.append("outreach", person("bob"), attempted(BOB, "A"), failed(BOB));
    expect(await world.follow(await act(world, "retry", "@bob"))).toContain("may contact the recipient again");
    expect(await world.harness.events("RecipientRetryAllowed")).toHaveLength(1);
  });

  test("releases a recipient whose reply is held: the overview asks for it, and their page says why", async () => {
    const world = await openSignedIn();
    const held = { recipient: BOB, message_id: "m", received_at: "2026-03-01T08:00:00.000Z" };
    await world.harness.append("outreach", person("bob"), { type: "RecipientHeld", data: held });
    const read = async (path: string) => {
      await world.harness.projector.until((await world.harness.store.head()).position);
      return (await ask(world.harness.app, path, { headers: { cookie: world.cookie } })).text();
    };
    expect(await read("/")).toContain('<a href="/people?status=held">1 reply</a> may ask to be left alone');
    expect(await read("/people?status=held")).toContain("reply held");
    expect(await read(`/people/${BOB.id}`)).toContain("may have asked to be left alone");
    expect(await world.follow(await act(world, "release", "@bob"))).toContain(
      "The next run may contact the recipient.",
    );
    expect(await world.harness.events("RecipientReleased")).toHaveLength(1);
    expect(await read("/")).not.toContain("may ask to be left alone");
  });

  test("forgets: the page that it leads back to says so, and knows no recipient", async () => {
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

  test("or with an address, whose clicks are erased from the page of links", async () => {
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
    expect(await world.follow(await erase("another"))).toContain('role="alert">The request does not match');
  });

  test("has no actions for a read-only viewer, nor in the past", async () => {
    const harness = await openWithPeople();
    for (const path of ["/people/@bob?as_of=4", "/people?as_of=4"]) {
      expect(await textsAt(await pageAt(harness, path), "details.confirmed, input[type=file]")).toEqual([]);
    }
  });
});

test("the list of a moment whose changes are no longer held is folded from the log", async () => {
  const harness = await openConsole();
  await harness.append("outreach", person("ada", "none"), person("ada", "opt_in"), person("bea"));
  const rowsAt = async (asOf: number) => rowsOf(await pageAt(harness, `/people?as_of=${asOf}`));
  const before = await rowsAt(1);
  expect(before).toEqual([expect.stringContaining("none")]);
  const contacts = harness.projector.state("contacts");
  dropReplacedUpTo(contacts, 2);
  expect(await rowsAt(1)).toEqual(before);
});
