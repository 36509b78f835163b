// These tests run parts of the service inside the test process.
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing";
import { findContact } from "../../projections/contact-identity.ts";
import type { Contacts } from "../../projections/contact-state.ts";
import { contacts } from "../../projections/contacts.ts";
import type { Recipient } from "../../events/outreach.ts";
import { deriveKey } from "../../src/vault/derive-keys.ts";
import { audit } from "../../src/commands/audit.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { createSuppressionHashes } from "../../src/privacy/suppression-hashes.ts";
import { capture } from "../harness/capture-command.ts";
import { openCommands, timeAt, type CommandHarness } from "../harness/in-process/commands.ts";
import { addedOf, clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import {
  contact,
  contacts as contactsCommand,
  recipients,
  showHistoryCommand,
} from "../harness/in-process/operation-commands.ts";

const KEY = new Uint8Array(32).fill(9);

const hashes = createSuppressionHashes(deriveKey(KEY, "suppression"));

const ANN = { id: "101", username: "ann" };
const RENAMED = { id: "101", username: "ann_b" };

let world: CommandHarness;
beforeEach(async () => {
  world = await openCommands(undefined, { REACHLOG_KEY: Buffer.from(KEY).toString("base64") });
});
afterEach(() => world[Symbol.asyncDispose]());

async function state(): Promise<Contacts> {
  const folded = contacts.initial();
  for await (const event of world.store.read({})) contacts.evolve(folded, event);
  return folded;
}

async function lastMarks(): Promise<readonly string[]> {
  for await (const { data } of world.store.read({ types: ["RecipientSuppressed"], backwards: true, limit: 1 })) {
    return "hashes" in data ? (data.hashes ?? []) : [];
  }
  return [];
}

const imported = (recipient: Recipient): NewEvent => addedOf(recipient, { basis: "dm_first" });

describe("recipients suppress", () => {
  test("records the hashes of every known name of the recipient", async () => {
    await world.append(STREAMS.outreach, [imported(ANN)]);
    expect(await world.run(recipients, "suppress", "@Ann")).toMatchObject({ code: 0 });
    expect(new Set(await lastMarks())).toEqual(new Set(hashes(ANN)));
  });

  test("records the hash of an unknown recipient's handle", async () => {
    await world.append(STREAMS.outreach, [imported({ id: "102" })]);
    expect(await world.run(recipients, "suppress", "ann")).toMatchObject({ code: 0 });
    expect(await lastMarks()).toEqual([...hashes({ username: "ann" })]);
  });

  test("suppresses an unknown name too, and says that it is unknown", async () => {
    await world.append(STREAMS.outreach, [imported(ANN)]);
    expect(await world.run(recipients, "suppress", "@ann")).toMatchObject({
      out: "The recipient never gets a message again.\n",
    });
    const { code, out } = await world.run(recipients, "suppress", "@nan");
    expect([code, out]).toEqual([
      0,
      "The recipient never gets a message again; no recipient of that name is known yet.\n",
    ]);
    expect(findContact(await state(), { username: "nan" })).toMatchObject({ suppressed: true });
  });

  test("by a former handle suppresses the recipient, by all their names", async () => {
    await world.append(STREAMS.outreach, [imported(ANN), imported(RENAMED)]);
    expect(await world.run(recipients, "suppress", "ann")).toMatchObject({ code: 0 });
    expect(new Set(await lastMarks())).toEqual(new Set([...hashes(RENAMED), ...hashes(ANN)]));
    expect(findContact(await state(), { id: "101" })).toMatchObject({ suppressed: true });
  });
});

test("recipients retry by a former handle reopens the recipient", async () => {
  const attempt = { attempt_id: "a", run_id: "r", recipient: ANN };
  await world.append(STREAMS.outreach, [
    { type: "DirectMessageAttempted", data: { ...attempt, text: "Hi", variant: "A", day: "2025-11-20" } },
    {
      type: "DirectMessageFailed",
      data: { ...attempt, reason: "recipient_closed", detail: "", frees_quota: true, retry: false },
    },
    imported(RENAMED),
  ]);
  expect(await world.run(recipients, "retry", "ann")).toMatchObject({ code: 0 });
  expect(findContact(await state(), { id: "101" })).toMatchObject({ status: "open", again: true });
  expect(world.run(recipients, "retry", "ann")).rejects.toThrow("no failed message to retry");
});

test("recipients list --held shows the held recipients, and release frees one", async () => {
  const data = { recipient: ANN, message_id: "m", received_at: "2026-03-01T08:00:00.000Z" };
  await world.append(STREAMS.outreach, [imported({ id: "102" }), { type: "RecipientHeld", data }]);
  const listed = async () => (await world.run(recipients, "list", "--held", "--json")).out;
  expect(JSON.parse(await listed())).toMatchObject({ id: "101", held: true, held_at: data.received_at });
  expect((await world.run(recipients, "list")).out).toContain("held");
  const { code, out } = await world.run(recipients, "release", "ann");
  expect([code, out]).toEqual([0, "The next run may contact the recipient.\n"]);
  expect(await listed()).toBe("");
});

describe("recipients import", () => {
  const file = (name: string, text: string): string => {
    const path = join(world.directory, name);
    writeFileSync(path, text);
    return path;
  };

  test("reports with --json the added, refused and duplicate rows and the template fields", async () => {
    const file = join(world.directory, "people.csv");
    writeFileSync(file, "username,basis,city\nann,opt_in,Rome\n!,opt_in,\nbob,none,Bonn\nann,opt_in,Oslo\n");
    const { code, out, err } = await world.run(recipients, "import", file, "--json");
    expect([code, err, JSON.parse(out)]).toEqual([
      1,
      "",
      {
        added: 2,
        updated: 0,
        refused: 1,
        refused_rows: [{ line: 3, value: "!", reason: expect.any(String) }],
        duplicates: 1,
        duplicate_rows: [{ line: 5, of: 2 }],
        without_consent: 1,
        without_evidence: 1,
        revoked: 0,
        template_fields: ["city"],
        noted_cells: 0,
        notes: [],
      },
    ]);
  });

  test("reports how many lack consent, and which columns are template fields", async () => {
    const people = file("people.csv", "username,Product,name,Since\nann,tea,Ann,2019\nbob,,Bob,\n");
    expect((await world.run(recipients, "import", people)).out).toBe(
      "2 added, 0 updated, 0 refused\n" +
        "2 of them without consent: their basis is none or missing, and get no message while REQUIRE_CONSENT is true (see basis in the help)\n" +
        "template fields: product, since\n",
    );
  });

  test("reports how many consents the file revokes", async () => {
    await world.append(STREAMS.outreach, [imported(ANN), imported({ username: "bob" })]);
    const { out } = await world.run(recipients, "import", file("people.csv", "username,basis\nann,none\nbob,\n"));
    expect(out).toContain("\n1 of them had consent before: the file revokes it by the basis none\n");
    expect(findContact(await state(), { username: "bob" })).toMatchObject({ basis: "dm_first" });
  });

  test("reports the cells that it did not read literally", async () => {
    const people = file("people.csv", "id,username,name,basis\n1001,null,Ann,opt_in\n1002,null,'@Bea,opt_in\n");
    expect((await world.run(recipients, "import", people)).out).toBe(
      "2 added, 0 updated, 0 refused\n" +
        'username: "null" in 2 rows, first on line 2 was read as a blank cell\n' +
        "name: the guard of '@Bea against spreadsheet formulas was removed on line 3\n",
    );
  });

  test("reads columns as --map says, and --preview writes nothing", async () => {
    const people = file("people.csv", "E-Mail,Account,Opted in\na@x.example,ann,yes\nb@x.example,bea,no\nc,no one,\n");
    const previewed = await world.run(recipients, "import", people, "--preview", "--json");
    expect(JSON.parse(previewed.out)).toMatchObject({ added: 2, updated: 0, unchanged: 0, refused: 1 });
    const shown = await world.run(recipients, "import", people, "--preview", "--map", "E-Mail=");
    expect(shown.out).toContain("2 new, 0 updated, 0 unchanged, 1 refused\nE-Mail: left out\nAccount: username\n");
    expect(world.run(recipients, "import", people)).rejects.toThrow("did you mean");
    const map = ["--map", "E-Mail=", "--map", "account=username", "--map", "Opted in=basis"];
    expect((await world.run(recipients, "import", people, ...map)).out).toStartWith("2 added, 0 updated, 1 refused\n");
    expect(world.run(recipients, "import", people, "--map", "Town=city")).rejects.toThrow(
      "which the file does not have",
    );
    expect(world.run(recipients, "import", people, "--map", "Town")).rejects.toThrow("write it as header=column");
  });

  test("needs --dates for ambiguous dates, and refuses columns that resemble consent", async () => {
    const people = file("people.csv", "username,basis,consent_at\nann,opt_in,3/2/2025\n");
    expect(await world.run(recipients, "import", people)).toMatchObject({
      code: 1,
      err: expect.stringContaining("line 2: consent_at 3/2/2025 is ambiguous, 2025-02-03 or 2025-03-02"),
    });
    expect(await world.run(recipients, "import", people, "--dates", "dmy")).toMatchObject({ code: 0 });
    expect(findContact(await state(), { username: "ann" })?.consent?.at).toBe("2025-02-03");
    const marketers = file("crm.csv", "Handle,First Name,Opted in,Opt-in date\nann,Ann,yes,2025-03-02\n");
    expect(world.run(recipients, "import", marketers)).rejects.toThrow("did you mean name, basis, consent_at?");
  });

  test("takes a basis and a source for all rows that give none", async () => {
    const people = file("people.csv", "username,consent_at\nann,2025-03-02\n");
    expect(await world.run(recipients, "import", people)).toMatchObject({
      code: 1,
      err: "line 2: consent_at says when they agreed, not how: choose the basis for all rows, or add the column basis\n",
    });
    const stated = ["--basis", "opted in", "--consent-source", "Newsletter form"];
    const previewed = await world.run(recipients, "import", people, "--preview", ...stated);
    expect(previewed.out).toStartWith("1 new, 0 updated, 0 unchanged, 0 refused\n");
    expect(await world.run(recipients, "import", people, ...stated)).toMatchObject({ code: 0 });
    expect(findContact(await state(), { username: "ann" })).toMatchObject({
      basis: "opt_in",
      consent: { at: "2025-03-02", source: "Newsletter form" },
    });
    expect(world.run(recipients, "import", people, "--basis", "yes")).rejects.toThrow("for all rows: basis must be");
  });

  test("does not report recipients without consent who opted in or wrote first", async () => {
    const received = { recipient: ANN, message_id: "m", received_at: "2025-11-20T09:00:00.000Z" };
    await world.append(STREAMS.outreach, [{ type: "DirectMessageReceived", data: received }]);
    const people = file("people.csv", "username,basis\nann,none\nbob,opt_in\ncid,\n");
    expect((await world.run(recipients, "import", people)).out).toContain("\n1 of them without consent: ");
  });

  test("reports that recipients without consent get messages if none is required", async () => {
    world.env["REQUIRE_CONSENT"] = "false";
    expect((await world.run(recipients, "import", file("people.csv", "username\nann\n"))).out).toContain(
      "1 of them without consent: their basis is none or missing, and get messages anyway",
    );
  });

  test("reports how many lack evidence if that is required", async () => {
    const people = file(
      "people.csv",
      "username,basis,consent_at,consent_source\nann,opt_in,2025-03-02,form\nbob,opt_in,,\n",
    );
    expect((await world.run(recipients, "import", people)).out).not.toContain("evidence");
    world.env["REQUIRE_CONSENT"] = "evidence";
    expect((await world.run(recipients, "import", people)).out).toBe(
      "0 added, 2 updated, 0 refused\n" +
        "1 of them without evidence: consent_at or consent_source is missing, and get no message while REQUIRE_CONSENT is evidence (see basis in the help)\n",
    );
  });

  test("when interrupted reports its progress; a repeat imports the rest", async () => {
    const names = Array.from({ length: 6_000 }, (_, at) => `person_${at}`);
    const people = file("many.csv", `username,basis\n${names.map((name) => `${name},opt_in\n`).join("")}`);
    const { code, out, err } = await world.interruptedAt(2, recipients, "import", people);
    expect([code, out, err]).toEqual([
      130,
      "",
      "interrupted: 5000 of 6000 rows were imported, up to line 5001; run the import again for the rest\n",
    ]);
    expect((await state()).people.size).toBe(5_000);
    expect((await world.run(recipients, "import", people)).out).toBe("1000 added, 5000 updated, 0 refused\n");
  });

  test("succeeds although another writer appends at the same time", async () => {
    const names = Array.from({ length: 1_500 }, (_, at) => `person_${at}`);
    const people = file("many.csv", `username,basis\n${names.map((name) => `${name},opt_in\n`).join("")}`);
    const [{ out }] = await Promise.all([
      world.run(recipients, "import", people),
      world.append(
        STREAMS.outreach,
        Array.from({ length: 20 }, (_, at) => imported({ id: String(at + 1) })),
      ),
    ]);
    expect(out).toBe("1500 added, 0 updated, 0 refused\n");
    expect((await state()).people.size).toBe(1_520);
  });

  test.each(["people.xlsx", "people.XLS", "people.ods", "people.numbers"])(
    "refuses %s and says how to convert it",
    (name) => {
      expect(world.run(recipients, "import", file(name, "PK"))).rejects.toThrow(
        `${join(world.directory, name)} is a workbook: save it as CSV ("CSV UTF-8") and import that`,
      );
    },
  );

  test("accepts a file of any name with --format", async () => {
    const people = file("people.dat", '{"username":"ann","basis":"opt_in"}\n');
    expect(world.run(recipients, "import", people)).rejects.toThrow("--format");
    expect((await world.run(recipients, "import", people, "--format", "jsonl")).out).toBe(
      "1 added, 0 updated, 0 refused\n",
    );
  });
});

describe("recipients consent", () => {
  const consent = (...args: string[]) => world.run(recipients, "consent", ...args);
  const OPT_IN = "--basis opt_in --consent-at 2025-03-02 --consent-source https://shop.example/form".split(" ");
  OPT_IN.push("--consent-text", "Yes, send me news");
  const DENIED = ["--tracking", "denied", "--tracking-at", "2025-04-01", "--tracking-source", "message"];

  test("records the consent and shows the current one", async () => {
    await world.append(STREAMS.outreach, [imported(ANN)]);
    expect((await consent("@Ann", ...OPT_IN)).out).toBe("The consent is recorded. Basis: opt_in; tracking: unknown.\n");
    const denied = ["ann", ...DENIED, "--tracking-text", "No"];
    expect((await consent(...denied)).out).toBe("The consent is recorded. Basis: opt_in; tracking: denied.\n");
    // Repeating the command appends no event.
    const { position } = await world.store.head();
    await consent(...denied);
    expect((await world.store.head()).position).toBe(position);
    const sentence =
      'Opted in on 2025-03-02 at https://shop.example/form ("Yes, send me news"); tracking denied on 2025-04-01 by message ("No").\n';
    expect((await world.run(contact, "ann")).out).toContain(sentence);
    expect((await world.run(showHistoryCommand, "ann")).out).toContain(sentence);
  });

  test("for an unknown recipient is recorded for the name", async () => {
    expect((await consent("nan", "--tracking", "denied")).out).toBe(
      "The consent is recorded. Basis: none; tracking: denied. No recipient of that name is known yet.\n",
    );
    expect(findContact(await state(), { username: "nan" })?.tracking.status).toBe("denied");
  });

  test("refuses invalid evidence, and records nothing", async () => {
    await world.append(STREAMS.outreach, [imported(ANN)]);
    expect(consent("ann", "--tracking", "denied", "--tracking-at", "2125-01-01")).rejects.toThrow(
      "Nothing was recorded: tracking_at is in the future.",
    );
    expect((await world.store.head()).position).toBe(1);
  });
});

describe("recipients evidence", () => {
  const attempt = { attempt_id: "a1", run_id: "r1", recipient: ANN };
  const click = {
    domain: "go.example",
    short_code: "own-ann",
    original_url: "https://shop.example/",
    ip: "203.0.113.7",
  };

  async function openWithHistory(): Promise<void> {
    await world.append(STREAMS.outreach, [
      addedOf(ANN, { tracking: "granted", tracking_at: "2025-03-02", tracking_source: "form" }),
      addedOf({ id: "102", username: "bea" }, { name: "Bea Cole" }),
      {
        type: "DirectMessageAttempted",
        data: {
          ...attempt,
          text: "Hi Ann",
          variant: "A",
          personal_links: [{ code: "own-ann", link: "go.example/shared" }],
          basis: "opt_in",
          source: "list",
          day: "2025-11-20",
        },
      },
      { type: "DirectMessageSent", data: { ...attempt, message_id: "m1", settled_by: "answer" } },
    ]);
    await world.append(STREAMS.link("go.example", "shared"), [
      clickOf(click),
      { type: "PersonalLinkClicked", data: { code: "own-ann" } },
      clickOf({ ...click, ip: "203.0.113.8" }),
      { type: "PersonalLinkClicked", data: { code: "own-bea" } },
    ]);
  }

  test("lists of recipients omit the codes of personal links", async () => {
    await openWithHistory();
    const lists = [
      await world.run(contactsCommand, "--json"),
      await world.run(contact, "ann", "--json"),
      await world.run(contactsCommand, "--json", "--as-of", "3"),
    ];
    for (const { out } of lists) {
      expect(out).toContain('"username":"ann"');
      expect(out).not.toMatch(/personal_links|own-ann/);
    }
  });

  test("writes all events of one recipient and of no other, with valid proofs", async () => {
    await openWithHistory();
    const out = join(world.directory, "ann.json");
    expect(await world.run(recipients, "evidence", "@ann", "--out", out)).toEqual({
      code: 0,
      out: `${out} holds 5 events with their proofs\n`,
      err: "",
    });
    expect(statSync(out).mode & 0o777).toBe(0o600);
    const text = readFileSync(out, "utf8");
    const { events, public_key, ...evidence } = JSON.parse(text) as {
      readonly public_key: string;
      readonly events: readonly { readonly position: number; readonly proof: string }[];
    };
    expect(evidence).toEqual({
      position: 8,
      recipient: { ...ANN, fields: {}, status: "sent", suppressed: false },
      consent: {
        words: "Opted in; tracking granted on 2025-03-02 by form.",
        basis: "opt_in",
        evidence: null,
        tracking: { status: "granted", at: "2025-03-02", source: "form" },
      },
      campaigns: [{ campaign: "default", status: "sent", attempted_at: timeAt(3), variant: "A", replied: false }],
      consent_history: [{ position: 1, time: timeAt(1), words: expect.stringContaining("was imported from the list") }],
      messages: [
        {
          position: 3,
          time: timeAt(3),
          campaign: "default",
          text: "Hi Ann",
          variant: "A",
          basis: "opt_in",
          source: "list",
          outcome: { position: 4, time: timeAt(4), words: "message m1 was sent to @ann (101)" },
        },
      ],
    });
    expect(events.map(({ position }) => position)).toEqual([1, 3, 4, 5, 6]);
    expect(events[3]).toMatchObject({ type: "LinkClicked", data: { ip: "203.0.113.7" } });
    expect(text).not.toMatch(/Bea Cole|own-bea|203\.0\.113\.8/);
    for (const { position, proof } of events) {
      const file = join(world.directory, `${position}.tlog-proof`);
      writeFileSync(file, proof);
      const checked = await world.run(audit, "check", file, "--public-key", public_key);
      expect([checked.code, checked.out]).toEqual([0, expect.stringContaining(`stood at position ${position} of `)]);
    }
    // The command refuses to overwrite the files that it wrote before.
    expect(await world.run(recipients, "evidence", "ann", "--out", out).catch((fault: unknown) => fault)).toMatchObject(
      {
        kind: "conflict",
      },
    );
  });

  test("tells the campaigns of a recipient's messages and consents apart", async () => {
    await openWithHistory();
    const [intent, outcome] = [
      { ...attempt, attempt_id: "a2", campaign: "spring", text: "News", variant: "B", day: "2025-11-20" },
      { ...attempt, attempt_id: "a2", campaign: "spring", reason: "rejected", detail: "", frees_quota: true } as const,
    ];
    await world.append(STREAMS.outreach, [
      { type: "ConsentRecorded", data: { recipient: { id: ANN.id }, basis: "none", consent_for: "spring" } },
      { type: "DirectMessageAttempted", data: intent },
      { type: "DirectMessageFailed", data: { ...outcome, retry: false } },
    ]);
    const out = join(world.directory, "ann.json");
    await world.run(recipients, "evidence", "@ann", "--out", out);
    expect(JSON.parse(readFileSync(out, "utf8"))).toMatchObject({
      consent: { consents_for: { spring: { basis: "none" } } },
      campaigns: [
        { campaign: "spring", status: "failed", variant: "B", replied: false },
        { campaign: "default", status: "sent", attempted_at: timeAt(3), variant: "A", replied: false },
      ],
      messages: [{ campaign: "default" }, { campaign: "spring", text: "News" }],
    });
  });

  test("after tracking was denied contains the denial and the erasure, but no clicks", async () => {
    await openWithHistory();
    await world.run(
      recipients,
      "consent",
      "ann",
      "--tracking",
      "denied",
      "--tracking-at",
      "2025-04-01",
      "--tracking-source",
      "mail",
    );
    const again = { ...attempt, attempt_id: "a2", text: "Once more", variant: "A", day: "2025-11-20" };
    await world.append(STREAMS.outreach, [{ type: "DirectMessageAttempted", data: again }]);
    const out = join(world.directory, "ann.json");
    await world.run(recipients, "evidence", "101", "--out", out);
    const { consent, messages, events } = JSON.parse(readFileSync(out, "utf8")) as {
      readonly messages: readonly object[];
      readonly consent: { readonly words: string };
      readonly events: readonly { readonly position: number; readonly type: string }[];
    };
    expect(consent.words).toBe("Opted in; tracking denied on 2025-04-01 by mail.");
    expect(events.map(({ position, type }) => `${position} ${type}`)).toEqual([
      "1 RecipientAdded",
      "3 DirectMessageAttempted",
      "4 DirectMessageSent",
      "9 ConsentRecorded",
      "10 PersonForgotten",
      "11 DirectMessageAttempted",
    ]);
    expect(messages).toMatchObject([{ outcome: { position: 4 } }, { outcome: null }]);
  });

  test("refuses an unknown recipient, and a missing --out", async () => {
    await openWithHistory();
    const out = join(world.directory, "nan.json");
    expect(await world.run(recipients, "evidence", "nan", "--out", out)).toEqual({
      code: 1,
      out: "",
      err: "no recipient is known as nan\n",
    });
    expect(existsSync(out)).toBe(false);
    expect(await world.run(recipients, "evidence", "ann").catch((fault: unknown) => fault)).toMatchObject({
      kind: "usage",
    });
  });
});

test("on PostgreSQL an import, a consent, and the evidence with its proofs work", async () => {
  const DATABASE_URL = (await newDatabase()).replace("postgres@", "postgres:hunter2@");
  const env = { DATABASE_URL, REACHLOG_KEY: world.env["REACHLOG_KEY"] };
  const people = join(world.directory, "people.csv");
  writeFileSync(people, "username,basis,consent_at,consent_source,tracking\nann,opt_in,2025-03-02,form,granted\n");
  expect((await capture(recipients, ["import", people], { env })).out).toBe("1 added, 0 updated, 0 refused\n");
  writeFileSync(people, "username,city\nann,Rome\n");
  expect((await capture(recipients, ["import", people], { env })).out).toBe(
    "0 added, 1 updated, 0 refused\ntemplate fields: city\n",
  );
  const sentence = "Opted in on 2025-03-02 by form; tracking denied by mail.";
  const denied = ["consent", "ann", "--tracking", "denied", "--tracking-source", "mail"];
  await capture(recipients, denied, { env });
  const out = join(world.directory, "ann.json");
  await capture(recipients, ["evidence", "ann", "--out", out], { env });
  const { consent, public_key, events } = JSON.parse(readFileSync(out, "utf8")) as {
    readonly consent: { readonly words: string };
    readonly public_key: string;
    readonly events: readonly { readonly type: string; readonly proof: string }[];
  };
  expect(consent.words).toBe(sentence);
  expect(events.map(({ type }) => type)).toEqual(["RecipientAdded", "RecipientAdded", "ConsentRecorded"]);
  for (const [at, { proof }] of events.entries()) {
    const file = join(world.directory, `${at}.tlog-proof`);
    writeFileSync(file, proof);
    expect(await world.run(audit, "check", file, "--public-key", public_key)).toMatchObject({ code: 0 });
  }
});
