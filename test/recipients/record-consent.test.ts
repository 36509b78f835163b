// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { DataOf } from "../../events/event-types-and-codec.ts";
import type { KnownRecipient } from "../../events/outreach.ts";
import { KEYS_PER_EVENT_MAX } from "../../events/erasure.ts";
import { type ConsentRecord } from "../../projections/consent.ts";
import { findContact } from "../../projections/contact-identity.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import type { OutreachState } from "../../src/outreach/decide.ts";
import { startProjector, type Projector } from "../../src/projector/projector.ts";
import { importRecipients } from "../../src/recipients/import.ts";
import { parseRecipients } from "../../src/recipients/parse-imported-lists.ts";
import { previewImport } from "../../src/recipients/preview-import.ts";
import { decideConsent, findRevokedLinks, recordConsent } from "../../src/recipients/record-consent.ts";
import { given } from "../harness/in-process/given-when-then-for-deciders.ts";
import { RULES } from "../harness/in-process/simulated-outreach-processes.ts";
import { METADATA, openMemoryLog, type MemoryLog, toStateContext } from "../harness/in-process/temporary-log.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const ANN = { id: "101", username: "ann" };
const FORM = { consent_at: "2026-03-02", consent_source: "https://shop.example/form", consent_text: "Yes" } as const;

const findLinkKeys = (codes: readonly string[]): readonly string[] => codes.map((code) => `key of ${code}`);

const sentWithLinks = (recipient: KnownRecipient, ...codes: readonly string[]): NewEvent => ({
  type: "DirectMessageAttempted",
  data: {
    attempt_id: "a",
    run_id: "r",
    recipient,
    text: "Hi",
    variant: "A",
    personal_links: codes.map((code) => ({ code, link: "go.example/shared" })),
    day: "2026-03-01",
  },
});
const granted = (more: Partial<DataOf<"RecipientAdded">> = {}) => addedOf(ANN, { tracking: "granted", ...more });
const recording =
  (name: string, record: ConsentRecord) =>
  ({ contacts }: OutreachState) =>
    decideConsent(contacts, name, record, findLinkKeys);
const erased = (...codes: readonly string[]) => ({
  type: "PersonForgotten",
  data: { hashes: [], keys: findLinkKeys(codes), scope: "tracking" },
});

describe("a record of consent", () => {
  test.each(["@Ann", "ann", "https://x.com/ann", "101"])(
    "for %s names the recipient and contains the given values",
    (name) => {
      const recipient = name === "101" ? { id: "101" } : { username: name === "@Ann" ? "Ann" : "ann" };
      given(addedOf(ANN))
        .when(recording(name, { basis: "opt_in", ...FORM }))
        .thenEvents({ type: "ConsentRecorded", data: { recipient, basis: "opt_in", ...FORM } });
    },
  );

  test("for an unknown name is recorded", () => {
    given()
      .when(recording("ann", { tracking: "denied" }))
      .thenEvents({ data: { recipient: { username: "ann" }, tracking: "denied" } });
  });

  test("without a change is not recorded again", () => {
    const record = { basis: "opt_in", ...FORM, tracking: "denied", tracking_source: "mail" } as const;
    const before: NewEvent = { type: "ConsentRecorded", data: { recipient: ANN, ...record } };
    given(before).when(recording("ann", record)).thenEvents();
    given(before)
      .when(recording("ann", { tracking: "denied" }))
      .thenEvents();
    given(before)
      .when(recording("ann", { basis: "opt_in" }))
      .thenEvents();
    given(before)
      .when(recording("ann", { tracking: "denied", tracking_source: "form" }))
      .thenEvents({});
    given(before)
      .when(recording("ann", { basis: "opt_in", consent_at: "2026-03-02" }))
      .thenEvents({});
    given(addedOf(ANN))
      .when(recording("ann", { tracking: "unknown" }))
      .thenEvents();
  });
});

describe("a withdrawal that names a campaign", () => {
  const withdrawn = { basis: "none", consent_for: "spring" } as const;
  const before = addedOf(ANN, FORM);

  test("is recorded once, whatever consent is recorded besides", () => {
    given(before)
      .when(recording("ann", withdrawn))
      .thenEvents({ type: "ConsentRecorded", data: { recipient: { username: "ann" }, ...withdrawn } });
    const record: NewEvent = { type: "ConsentRecorded", data: { recipient: ANN, ...withdrawn } };
    given(before, record).when(recording("ann", withdrawn)).thenEvents();
    given(before, record)
      .when(recording("ann", { ...withdrawn, consent_for: "autumn" }))
      .thenEvents({});
    given(before, record)
      .when(recording("ann", { ...withdrawn, ...FORM }))
      .thenEvents({});
  });
});

describe("the revocation of granted tracking", () => {
  test.each(["denied", "unknown"] as const)("erases the clicks on personal links: %s", (tracking) => {
    given(granted(), sentWithLinks(ANN, "c1", "c2"))
      .when(recording("ann", { tracking }))
      .thenEvents({ type: "ConsentRecorded", data: { tracking } }, erased("c1", "c2"));
  });

  test.each([
    ["it was granted under another name", addedOf(ANN), "denied"],
    ["it was revoked before without an erasure", granted({ tracking: "denied" }), "unknown"],
  ] as const)("erases the remaining clicks if %s", (_what, before, tracking) => {
    given(before, sentWithLinks(ANN, "c1"))
      .when(recording("ann", { tracking, tracking_at: "2026-03-01" }))
      .thenEvents({ type: "ConsentRecorded" }, erased("c1"));
  });

  test("erases nothing if it stays granted, or if nothing remains", () => {
    given(granted(), sentWithLinks(ANN, "c1"))
      .when(recording("ann", { tracking: "granted", tracking_at: "2026-03-01" }))
      .thenEvents({ type: "ConsentRecorded" });
    given(granted(), sentWithLinks(ANN, "c1"))
      .when(({ contacts }) => decideConsent(contacts, "ann", { tracking: "denied" }, () => []))
      .thenEvents({ type: "ConsentRecorded" });
  });

  test("erases nothing without personal links, or if only the basis is recorded", () => {
    given(granted())
      .when(recording("ann", { tracking: "denied" }))
      .thenEvents({ type: "ConsentRecorded" });
    given(granted(), sentWithLinks(ANN, "c1"))
      .when(recording("ann", { basis: "none" }))
      .thenEvents({ type: "ConsentRecorded" });
  });

  test("erases the clicks of both entries if a row joins them", () => {
    const before = [
      granted({ recipient: { username: "ann" } }),
      sentWithLinks({ id: "101", username: "ann_old" }, "c1"),
    ];
    given(...before)
      .when(({ contacts }) => findRevokedLinks(contacts, ANN, { tracking: "denied" }))
      .thenAnswers(["c1"]);
    given(...before)
      .when(({ contacts }) => findRevokedLinks(contacts, { id: "101" }, { tracking: "granted" }))
      .thenAnswers([]);
  });

  test("is split into several events above the limit of keys", () => {
    const codes = Array.from({ length: KEYS_PER_EVENT_MAX + 1 }, (_, at) => `c${at}`);
    given(granted(), sentWithLinks(ANN, ...codes))
      .when(recording("ann", { tracking: "denied" }))
      .thenEvents({}, erased(...codes.slice(0, -1)), erased(...codes.slice(-1)));
  });
});

describe("consent in a log", () => {
  let log: MemoryLog;
  let projector: Projector;
  beforeEach(async () => {
    log = await openMemoryLog();
    projector = log.use(await startProjector(log.store));
  });
  afterEach(() => log[Symbol.asyncDispose]());

  const deps = () => ({
    ...toStateContext({ ...log, projector }, { sleep: async () => {} }),
    findLinkKeys,
    hashesOf: RULES.hashes,
  });
  const rowsOf = (csv: string) => parseRecipients(csv, "csv", { now: Date.parse("2026-11-20T10:00:00Z") }).rows;
  const options = { chunkRows: 2, signal: new AbortController().signal };

  test("is recorded with the contact, and whether it was known or a repeat", async () => {
    const record = { tracking: "denied" } as const;
    expect(await recordConsent(deps(), "ann", record, METADATA)).toMatchObject({
      isKnown: false,
      repeated: false,
      contact: { username: "ann", listed: false, tracking: { status: "denied" } },
    });
    expect(await recordConsent(deps(), "@ANN", record, METADATA)).toMatchObject({ isKnown: true, repeated: true });
    expect(await log.events("ConsentRecorded")).toHaveLength(1);
  });

  test("erases the clicks of a message that was sent at the same time", async () => {
    await log.eventLog.append(STREAMS.outreach, [granted()], METADATA);
    let isFirst = true;
    const eventLog: typeof log.eventLog = {
      ...log.eventLog,
      async append(...args) {
        if (isFirst) await log.eventLog.append(STREAMS.outreach, [sentWithLinks(ANN, "late")], METADATA);
        isFirst = false;
        return log.eventLog.append(...args);
      },
    };
    await recordConsent({ ...deps(), eventLog }, "ann", { tracking: "denied" }, METADATA);
    expect(await log.events("PersonForgotten")).toMatchObject([erased("late")]);
    await recordConsent(deps(), "ann", { tracking: "granted" }, METADATA);
    isFirst = true;
    await importRecipients({ ...deps(), eventLog }, rowsOf("username,tracking\nann,denied"), METADATA, options);
    expect((await log.events("PersonForgotten"))[1]?.data.keys).toEqual([...findLinkKeys(["late", "late"])]);
  });

  test("from a file is decided in sequence if a chunk may revoke", async () => {
    const order: string[] = [];
    const eventLog: typeof log.eventLog = {
      ...log.eventLog,
      async append(...args) {
        order.push("begin");
        const appended = await log.eventLog.append(...args);
        order.push("end");
        return appended;
      },
    };
    const rows = rowsOf("username,tracking\nann,granted\nbea,denied\ncid,denied");
    await importRecipients({ ...deps(), eventLog }, rows, METADATA, { ...options, chunkRows: 1 });
    expect(order.join()).toBe("begin,end,begin,end,begin,end");
  });

  test("for a campaign is withdrawn by a file and by an operator, and both count it", async () => {
    await projector.until((await log.eventLog.append(STREAMS.outreach, [addedOf(ANN, FORM)], METADATA)).last);
    const rows = rowsOf("username,basis,consent_for\nann,none,spring");
    const previewed = () => previewImport(() => projector.state("contacts"), rows, undefined).next().value;
    expect(previewed()).toMatchObject({ updated: 1, unchanged: 0, revoked: 1 });
    expect(await importRecipients(deps(), rows, METADATA, options)).toMatchObject({ taken: 1, revoked: 1 });
    expect(previewed()).toMatchObject({ updated: 0, unchanged: 1, revoked: 0 });
    const autumn = { basis: "none", consent_for: "autumn" } as const;
    expect(await recordConsent(deps(), "ann", autumn, METADATA)).toMatchObject({ repeated: false });
    expect(await recordConsent(deps(), "ann", autumn, METADATA)).toMatchObject({ repeated: true });
    expect(findContact(projector.state("contacts"), ANN)).toMatchObject({
      basis: "opt_in",
      consents_for: { spring: { basis: "none" }, autumn: { basis: "none" } },
    });
  });

  test("from a file is stored with evidence, and revoked tracking erases in the same append", async () => {
    const bea = { id: "102", username: "bea" };
    await log.eventLog.append(
      STREAMS.outreach,
      [granted(), sentWithLinks(ANN, "c1"), addedOf(bea, { tracking: "granted" }), sentWithLinks(bea, "c2")],
      METADATA,
    );
    const before = (await log.store.head()).position;
    await importRecipients(deps(), rowsOf("username,basis\nann,opt_in\nbea,opt_in"), METADATA, options);
    expect(await log.events("PersonForgotten")).toEqual([]);
    const file = `username,basis,consent_at,consent_source,tracking,tracking_at,tracking_source,city
cid,opt_in,2026-03-02,form,granted,2026-03-02,form,Rome
ann,opt_in,,,denied,2026-04-01,mail,
bea,opt_in,,,unknown,,,`;
    const report = await importRecipients(deps(), rowsOf(file), METADATA, options);
    expect(report).toEqual({ taken: 3, added: 1, withoutConsent: 0, withoutEvidence: 2, revoked: 0, fields: ["city"] });
    expect(await log.events("PersonForgotten")).toMatchObject([erased("c1"), erased("c2")]);
    const types = (await Array.fromAsync(log.store.read({ from: before + 3 }))).map(({ type }) => type);
    expect(types).toEqual(["RecipientAdded", "RecipientAdded", "PersonForgotten", "RecipientAdded", "PersonForgotten"]);
    const people = projector.state("contacts");
    expect(findContact(people, { username: "cid" })).toMatchObject({
      consent: { basis: "opt_in", at: "2026-03-02", source: "form" },
      tracking: { status: "granted", at: "2026-03-02", source: "form" },
      fields: { city: "Rome" },
    });
    const held = { suppressed: false, listed: true, tracking: { status: "denied", at: "2026-04-01", source: "mail" } };
    expect(findContact(people, ANN)).toMatchObject(held);
    expect(people.hashes.size).toBe(0);
  });
});
