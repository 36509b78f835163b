// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { ask, post, problemIn } from "../../harness/in-process/app.ts";
import { oddIn } from "../../harness/unexpected-html.ts";
import { MARKETERS_LIST, PEOPLE_IN_LIST, REFUSED_LINES } from "../../fixtures/marketers-list.ts";
import { openConsole, openSignedIn, rowsOf, signIn, textsAt } from "../open-console.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };

async function upload(
  { harness, cookie, form_token }: Awaited<ReturnType<typeof openSignedIn>>,
  name: string,
  text: string | Uint8Array<ArrayBuffer>,
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

describe("an uploaded file", () => {
  test("is imported with the signed-in operator as caller, and answered with a report", async () => {
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

  test("is read with the chosen order of dates, and cells not read literally are reported", async () => {
    const world = await openSignedIn();
    const text = "username,name,basis,consent_at\nann,null,opt_in,3/2/2025\n";
    expect(await (await upload(world, "people.csv", text, { dates: "" })).text()).toContain("3/2/2025 is ambiguous");
    const page = await (await upload(world, "people.csv", text, { dates: "dmy" })).text();
    expect(page).toContain("1 added");
    expect((await textsAt(page, "main section bdi")).map(({ text: note }) => note)).toEqual([
      'name: "null" on line 2 was read as a blank cell',
    ]);
    expect((await world.harness.events("RecipientAdded"))[0]?.data.consent_at).toBe("2025-02-03");
  });

  test("with suppressions suppresses its recipients, and the page offers the list for download", async () => {
    const world = await openSignedIn();
    const text = "username,reason\nann,opt_out\nbea,<i>asked</i>\nno handle,\nANN,\n";
    const page = await (await upload(world, "list.csv", text, {}, "/console/suppressions")).text();
    expect(page).toContain("2 added, 1 suppressed before, 1 refused.");
    expect(await rowsOf(page)).toEqual([expect.stringMatching(/^line 4 \| no handle \| username is neither a handle/)]);
    expect(await oddIn(page)).toEqual([]);
    expect((await world.harness.events("RecipientSuppressed"))[0]?.meta.caller).toBe("tests");
    const headers = { cookie: world.cookie };
    const people = await (await ask(world.harness.app, "/people/import", { headers })).text();
    const links = [...people.matchAll(/<a href="(\/social\/suppressions[^"]*)" download>/g)].map(
      ([, href = ""]) => href,
    );
    expect(links).toEqual(["/social/suppressions", "/social/suppressions?hashed=true"]);
    for (const href of links) {
      const list = await (await ask(world.harness.app, href, { headers })).text();
      expect([href, list.includes("ann")]).toEqual([href, href === links[0]]);
    }
  });

  test.each([
    ["people.json", '[{"username":"ann"}]'],
    ["PEOPLE.JSONL", '{"username":"ann"}\n'],
    ["people.tsv", "username\tname\nann\tAnn"],
  ])("is read in the format of its name: %s", async (name, text) => {
    expect(await (await upload(await openSignedIn(), name, text)).text()).toContain("1 added");
  });

  test.each([
    ["people.xlsx", "PK", "this is a workbook"],
    ["people", "username\nann", "does not end in .csv, .json or .jsonl"],
    ["people.csv", "name\nAnn", "no column is named username, handle or id"],
    ["people.csv", "", "the file is empty"],
  ])("is refused with the reason if it is no list: %s", async (name, text, why) => {
    const world = await openSignedIn();
    const page = await world.follow(await upload(world, name, text));
    expect((await textsAt(page, '[role="alert"]'))[0]?.text).toContain(why);
    expect((await world.harness.store.head()).position).toBe(0);
  });

  test("is refused while another list is being imported", async () => {
    const world = await openSignedIn();
    const taken = Promise.withResolvers<void>();
    const other = world.harness.deps.load.whileTaking(() => taken.promise);
    const page = await world.follow(await upload(world, "people.csv", "username\nann"));
    expect((await textsAt(page, '[role="alert"]'))[0]?.text).toContain("Another list is being imported");
    taken.resolve();
    await other;
    expect((await world.harness.store.head()).position).toBe(0);
  });

  test("is reported with escaped and shortened texts", async () => {
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

  test("is refused before its end if it is too large, with a link back", async () => {
    const { harness, cookie } = await openSignedIn();
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(1024 * 1024)),
    });
    const headers = { cookie, "content-type": "multipart/form-data; boundary=x", accept: "text/html" };
    const answer = await post(harness.app, "/console/recipients", endless, { headers });
    expect(answer.status).toBe(413);
    const page = await answer.text();
    expect(page).toContain("The file is larger than 10 MiB. Nothing was imported");
    expect(page).toContain('<a href="/people">Back to the people</a>');
  });

  test("is refused without this session's form token, or without a file part", async () => {
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

  test.each(["//evil.example", "https://evil.example"])("cannot redirect to another site: %s", async (back) => {
    const answer = await upload(await openSignedIn(), "people.csv", "", { back });
    expect(await problemIn(answer)).toBe("422 invalid-request");
  });
});

describe("the preview of an import", () => {
  const PREVIEW = "/console/recipients/preview";

  /** Returns the fields of the page's form, as a browser sends them. */
  async function fieldsIn(page: string): Promise<Record<string, string>> {
    const fields: Record<string, string> = {};
    let name = "";
    await new HTMLRewriter()
      .on("#import input[type=hidden], #import input[checked], #import input:not([type])", {
        element: (input) => void (fields[input.getAttribute("name") ?? ""] = unescaped(input.getAttribute("value"))),
      })
      .on("#import select", { element: (select) => void (name = select.getAttribute("name") ?? "") })
      .on("#import option[selected]", {
        element: (option) => void (fields[name] = unescaped(option.getAttribute("value"))),
      })
      .transform(new Response(page))
      .text();
    return fields;
  }

  const unescaped = (text: string | null): string => (text ?? "").replaceAll("&quot;", '"').replaceAll("&amp;", "&");

  async function submit(
    { harness, cookie }: Awaited<ReturnType<typeof openSignedIn>>,
    fields: Readonly<Record<string, string>>,
    action = "/console/recipients",
  ): Promise<Response> {
    const form = new FormData();
    for (const [field, value] of Object.entries(fields)) form.set(field, value);
    // A browser also sends the field of a file, although no file is chosen.
    form.set("file", new File([], ""));
    const sent = new Response(form);
    const headers = { cookie, "content-type": sent.headers.get("content-type") ?? "" };
    return post(harness.app, action, await sent.bytes(), { headers });
  }

  const sums = async (page: string) => (await textsAt(page, ".sums div")).map(({ text }) => text);

  test("of a marketer's list shows totals, columns, people and refused lines, and records nothing", async () => {
    const world = await openSignedIn({ template: "Hi {{name}}, about {{product|it}}" });
    const answer = await upload(world, "december.csv", MARKETERS_LIST, {}, PREVIEW);
    expect(answer.status).toBe(200);
    const page = await answer.text();
    expect(await sums(page)).toEqual([`New${PEOPLE_IN_LIST}`, "Updated0", "Unchanged0", "Repeated5", "Refused40"]);
    expect(page).toContain("500 rows, separated by “;”");
    expect(PEOPLE_IN_LIST + 5 + 40).toBe(500);
    const fields = await fieldsIn(page);
    expect(Object.entries(fields).filter(([name]) => name.startsWith("map_") || name === "dates")).toEqual([
      ["map_0", "E-Mail="],
      ["map_1", "Twitter Handle=username"],
      ["map_2", "First Name=name"],
      ["map_3", "Opted in=basis"],
      ["map_4", "Opt-in date=consent_at"],
      ["dates", "dmy"],
      ["map_5", "Source=consent_source"],
      ["map_6", "Product=product"],
      ["map_7", "Notes="],
    ]);
    expect(await textsAt(page, ".asks")).toEqual([]);
    expect((await textsAt(page, ".peek > li")).map(({ text }) => text)).toEqual([
      expect.stringMatching(/^@person_0.*No consent 1 January 2025 Winter fair.*Hi Name 0, about it$/),
      expect.stringMatching(/^@person_1.*product: the design kit.*Opted in.*Hi Name 1, about the design kit$/),
      expect.stringMatching(/^@person_2/),
    ]);
    expect(page).toContain("The first 20 of 40.");
    const [, csv = ""] = /href="data:text\/csv;charset=utf-8,([^"]+)" download/.exec(page) ?? [];
    expect(decodeURIComponent(csv).trimEnd().split("\r\n")).toHaveLength(1 + REFUSED_LINES.length);
    expect(page).toContain("5 rows name a person of an earlier row");
    expect(page.length).toBeLessThan(200_000);
    expect((await world.harness.store.head()).position).toBe(0);

    const report = await (await submit(world, fields)).text();
    expect(report).toContain(`${PEOPLE_IN_LIST} added, 0 updated, 40 refused.`);
    const contacts = world.harness.projector.state("contacts").people;
    expect(contacts.size).toBe(PEOPLE_IN_LIST);
    expect(contacts.get("@person_1")).toMatchObject({
      name: "Name 1",
      basis: "opt_in",
      consent: { at: "2025-02-02", source: "Winter fair" },
      fields: { product: "the design kit" },
    });
    // The preview of an imported file finds no changes. It uses the last row of each repeated person, as the import
    // did.
    const again = await (await submit(world, fields, PREVIEW)).text();
    expect(await sums(again)).toEqual(["New0", "Updated0", `Unchanged${PEOPLE_IN_LIST}`, "Repeated5", "Refused40"]);
  });

  test.each(["username", "Handle"])("says once, and in plain words, why a handle under %p is refused", async (head) => {
    const page = await (await upload(await openSignedIn(), "list.csv", `${head}\nnot a handle\n`, {}, PREVIEW)).text();
    expect((await textsAt(page, ".refused li > bdi"))[0]?.text).toBe(
      "Neither a handle (1 to 15 letters, digits, underscores) nor the address of an X profile",
    );
  });

  test("takes a yes for a consent only in a column that the operator maps, not in one that is named so", async () => {
    const world = await openSignedIn();
    const text = "username,basis,tracking\nann,yes,\nbea,opt_in,yes\ncy,opt_in,granted\n";
    const page = await (await upload(world, "list.csv", text, {}, PREVIEW)).text();
    expect(await sums(page)).toEqual(["New1", "Updated0", "Unchanged0", "Repeated0", "Refused2"]);
    expect(await (await submit(world, await fieldsIn(page))).text()).toContain("1 added, 0 updated, 2 refused.");
  });

  test("offers refused lines for download, also with half a character", async () => {
    const world = await openSignedIn();
    const text = Array.from({ length: 30 }, (_, at) => `{"username":"half \\ud83d of ${at}"}`).join("\n");
    const answer = await upload(world, "list.jsonl", text, {}, PREVIEW);
    expect(answer.status).toBe(200);
    const [, csv = ""] = /href="data:text\/csv;charset=utf-8,([^"]+)" download/.exec(await answer.text()) ?? [];
    expect(decodeURIComponent(csv)).toContain("half \ufffd of 29");
  });

  test("asks only about what is not clear, and follows the choices", async () => {
    const world = await openSignedIn();
    const text = "Handle;Opted in;Opt-in date;First name;Full name\nann;yes;03/11/2025;Ann;Ann Lee\n";
    const page = await (await upload(world, "list.csv", text, {}, PREVIEW)).text();
    expect((await textsAt(page, ".asks label.from")).map(({ text: name }) => name)).toEqual([
      "Opt-in date",
      "Full name",
    ]);
    expect(page).toContain("03/11/2025 is ambiguous");
    expect(page).not.toMatch(/>Import \d/);
    const chosen = { ...(await fieldsIn(page)), dates: "mdy", map_3: "First name=", map_4: "Full name=name" };
    const next = await (await submit(world, chosen, PREVIEW)).text();
    expect(await textsAt(next, ".asks")).toEqual([]);
    expect(next).toContain(">Import 1 person</button>");
    expect((await textsAt(next, ".peek > li"))[0]?.text).toMatch(/@ann Ann Lee.*Opted in 11 March 2025/);
    expect((await world.harness.store.head()).position).toBe(0);
  });

  const STRANGERS = "Name;X-Handle;Einwilligung am;Stadt";

  test("of dates without a basis asks once for the basis and the source of all rows", async () => {
    const world = await openSignedIn();
    const rows = ["Ann;ann;13.11.2025;Rom", "Bea;bea;02.03.2025;Rom", "Cy;cy;;Rom", "Di;d i;02.03.2025;Rom"];
    const page = await (await upload(world, "list.csv", [STRANGERS, ...rows].join("\n"), {}, PREVIEW)).text();
    expect((await textsAt(page, "[role=alert]")).map(({ text }) => text)).toEqual([
      "This file says when people agreed, not how: choose the basis for all rows. Until then, 2 rows are refused.",
    ]);
    expect(await sums(page)).toEqual(["New1", "Updated0", "Unchanged0", "Repeated0", "Refused3"]);
    expect((await textsAt(page, ".refused li > bdi")).map(({ text }) => text)[0]).toBe(
      "Einwilligung am says when they agreed, not how: choose the basis for all rows, or add the column basis",
    );
    expect(page).toContain("<details open>");
    const chosen = { ...(await fieldsIn(page)), basis: "opt_in", consent_source: "Newsletter form" };
    const next = await (await submit(world, chosen, PREVIEW)).text();
    expect(await textsAt(next, "[role=alert]")).toEqual([]);
    expect(await sums(next)).toEqual(["New3", "Updated0", "Unchanged0", "Repeated0", "Refused1"]);
    expect((await textsAt(next, ".refused li > bdi")).map(({ text }) => text)).toEqual([
      "Neither a handle (1 to 15 letters, digits, underscores) nor the address of an X profile",
    ]);
    // Before the import, the preview names the people without evidence of their consent.
    expect(next).toContain("1 person has no date of consent: @cy in line 4.");
    expect((await textsAt(next, "footer [role=status]"))[0]?.text).toBe(
      "Imports 3 people; 3 of them with consent, 1 without its date or source.",
    );
    expect((await world.harness.store.head()).position).toBe(0);

    const fields = await fieldsIn(next);
    expect(fields).toMatchObject({ basis: "opt_in", consent_source: "Newsletter form" });
    const report = await (await submit(world, fields)).text();
    expect(report).toContain("3 added, 0 updated, 1 refused.");
    expect(report).toContain("1 of them without the date or source of their consent.");
    expect(report).not.toContain("REQUIRE_CONSENT");
    expect((await world.harness.events("RecipientAdded"))[1]?.data).toMatchObject({
      basis: "opt_in",
      consent_at: "2025-03-02",
      consent_source: "Newsletter form",
    });
  });

  test("asks for no order of dates that another date proves, and for nothing about a recognised column", async () => {
    const world = await openSignedIn();
    const rows = ["Ann;ann;02.03.2025;Rom", "Bea;bea;13.11.2025;Rom"];
    const text = [STRANGERS, ...rows].join("\n");
    const page = await (await upload(world, "list.csv", text, { basis: "opt_in" }, PREVIEW)).text();
    expect(await textsAt(page, "#import input[type=radio]")).toEqual([]);
    expect((await textsAt(page, ".hint")).map(({ text: hint }) => hint)[2]).toBe(
      "Recognised by its name: change it if it is something else. " +
        "02.03.2025 is read as 2 March 2025: other dates of the file fit only this order.",
    );
    expect((await fieldsIn(page))["dates"]).toBe("dmy");
    expect((await textsAt(page, "#map-2 option[selected]"))[0]?.text).toBe("date of consent");
    const report = await (await submit(world, await fieldsIn(page))).text();
    expect(report).toContain("2 added");
    expect((await world.harness.events("RecipientAdded"))[0]?.data.consent_at).toBe("2025-03-02");
  });

  test.each([
    [25, 25, ""],
    [26, 20, "The first 20 of 26."],
  ])("lists %d refused lines as %d, and links to them from the totals", async (refused, listed, words) => {
    const world = await openSignedIn();
    const rows = Array.from({ length: refused }, (_, at) => `no handle ${at}`);
    const page = await (await upload(world, "list.csv", ["username", ...rows].join("\n"), {}, PREVIEW)).text();
    expect(await textsAt(page, ".refused li")).toHaveLength(listed);
    expect(page.includes("The first ")).toBe(words !== "");
    expect(page).toContain(words);
    expect(page).toContain(`<a href="#refused-lines">${refused}</a>`);
    expect(page).toContain('<section id="refused-lines">');
  });

  test("waits for a list that is read at the same time", async () => {
    const world = await openSignedIn();
    const taken = Promise.withResolvers<void>();
    const other = world.harness.deps.load.whileTaking(() => taken.promise);
    const preview = upload(world, "people.csv", "username\nann", {}, PREVIEW);
    await Bun.sleep(50);
    taken.resolve();
    await other;
    expect([(await preview).status, await (await preview).text()]).toEqual([
      200,
      expect.stringContaining(">Import 1 person</button>"),
    ]);
  });

  test("of a file without a handle asks which column has it, and offers no import", async () => {
    const world = await openSignedIn();
    const page = await (await upload(world, "list.csv", "Company;Town\nAcme;Rome\n", {}, PREVIEW)).text();
    expect((await textsAt(page, "[role=alert]"))[0]?.text).toContain("no column is named username, handle or id");
    expect(page).not.toMatch(/>Import \d/);
    const fields = { ...(await fieldsIn(page)), map_0: "Company=username" };
    expect(await (await submit(world, fields, PREVIEW)).text()).toContain(">Import 1 person</button>");
  });

  test.each([
    ["windows.csv", "username\nJos\xe9", "latin1", "perhaps Windows-1252"],
    ["people.xlsx", "PK", "utf8", "this is a workbook"],
    ["empty.csv", "", "utf8", "the file is empty"],
  ] as const)("refuses the whole file %s with the reason, and offers the choice again", async (name, text, as, why) => {
    const world = await openSignedIn();
    const answer = await upload(world, name, Buffer.from(text, as), {}, PREVIEW);
    expect(answer.status).toBe(422);
    const page = await answer.text();
    expect((await textsAt(page, "[role=alert]"))[0]?.text).toContain(why);
    expect(page).toContain('type="file"');
  });

  test("asks for a large file again, and imports none but that one", async () => {
    const world = await openSignedIn();
    const rows = Array.from({ length: 12_000 }, (_, at) => `p${at}${(at * 7_919).toString(36)}`.slice(0, 15));
    const large = `username\n${rows.map((row) => `${row}${Math.imul(row.length, 48_271)}`.slice(0, 15)).join("\n")}`;
    const noise = Array.from({ length: 12_000 }, (_, at) =>
      new Bun.CryptoHasher("sha256").update(`${at}`).digest("hex"),
    );
    const text = `${large
      .split("\n")
      .map((row, at) => `${row},${at === 0 ? "note" : noise[at]}`)
      .join("\n")}\n`;
    const page = await (await upload(world, "large.csv", text, {}, PREVIEW)).text();
    expect(page).toContain("choose it once more");
    expect(page.length).toBeLessThan(200_000);
    const fields = await fieldsIn(page);
    const other = await world.follow(await upload(world, "other.csv", "username\nann", fields));
    expect((await textsAt(other, "[role=alert]"))[0]?.text).toContain("this is not the file of the preview");
    expect((await world.harness.store.head()).position).toBe(0);
  });
});
