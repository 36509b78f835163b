// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import type { DataOf } from "../../events/event-types-and-codec.ts";
import type { KnownRecipient, Recipient } from "../../events/outreach.ts";
import { findContact, findPerson } from "../../projections/contact-identity.ts";
import { countPeopleAt, positionsAbout, type Contacts } from "../../projections/contact-state.ts";
import { contacts } from "../../projections/contacts.ts";
import { fold } from "../../projections/projection.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { histories } from "./generate-history.ts";
import { given as givenFor } from "../harness/in-process/number-and-fold-events.ts";
import { countCases, countSituations } from "../harness/case-count.ts";

const ANN = { id: "101", username: "ann" };

function given(...newEvents: NewEvent[]): Contacts {
  return givenFor(contacts, newEvents);
}

function added(recipient: Recipient, more: Partial<DataOf<"RecipientAdded">> = {}): NewEvent {
  return { type: "RecipientAdded", data: { recipient, basis: "opt_in", fields: {}, source: "list", ...more } };
}

function suppressed(recipient: Recipient): NewEvent {
  return { type: "RecipientSuppressed", data: { recipient, reason: "by_hand" } };
}

function attempted(recipient: KnownRecipient): NewEvent {
  const data = { attempt_id: "a", run_id: "r", recipient, text: "Hi", variant: "A", day: "2026-11-20" };
  return { type: "DirectMessageAttempted", data };
}

function sent(recipient: KnownRecipient): NewEvent {
  const data = { attempt_id: "a", run_id: "r", recipient, message_id: "m", settled_by: "answer" } as const;
  return { type: "DirectMessageSent", data };
}

function failed(recipient: KnownRecipient, retry: boolean): NewEvent {
  const data = { attempt_id: "a", run_id: "r", recipient, reason: "rejected", detail: "", frees_quota: true } as const;
  return { type: "DirectMessageFailed", data: { ...data, retry } };
}

function skipped(recipient: Recipient, reason: DataOf<"DirectMessageSkipped">["reason"]): NewEvent {
  return { type: "DirectMessageSkipped", data: { run_id: "r", recipient, reason } };
}

describe("a contact", () => {
  test("keeps the newest imported time zone, even after a merge", () => {
    const named = added({ username: "ann" }, { timezone: "Asia/Tokyo" });
    const state = given(named, added({ username: "ann" }), added({ id: "101" }), attempted(ANN));
    expect(findContact(state, ANN)?.timezone).toBe("Asia/Tokyo");
    const moved = given(named, added({ username: "ann" }, { timezone: "Europe/Berlin" }));
    expect(findContact(moved, { username: "ann" })?.timezone).toBe("Europe/Berlin");
  });

  test("is found by id and by handle in any case", () => {
    const state = given(added(ANN));
    expect(findContact(state, { id: "101" })).toMatchObject({ username: "ann", basis: "opt_in", listed: true });
    expect(findContact(state, { username: "ANN" })).toMatchObject({ id: "101" });
    expect(findContact(state, { username: "bea" })).toBeUndefined();
  });

  test("imported by handle gets its id from a run and stays one contact", () => {
    const state = given(added({ username: "Ann" }, { name: "Ann B." }), attempted(ANN), sent(ANN));
    expect(state.people.size).toBe(1);
    expect(findContact(state, { id: "101" })).toMatchObject({ name: "Ann B.", listed: true, status: "sent" });
  });

  test("has only clicks on its personal links among its events", () => {
    const intent = attempted(ANN) as NewEvent<"DirectMessageAttempted">;
    const personal_links = [{ code: "own", link: "go.example/shared" }];
    const clicked = (code: string): NewEvent => ({ type: "PersonalLinkClicked", data: { code } });
    const withLink = { ...intent, data: { ...intent.data, personal_links } };
    const state = given(added(ANN), clicked("own"), withLink, clicked("own"), clicked("another's"), clicked("own"));
    expect(findContact(state, ANN)).toMatchObject({ personal_links: ["own"], positions: [1, 3, 4, 6] });
  });

  test("keeps reads of its data apart from its events, even after a merge", () => {
    const read = (recipient?: Recipient): NewEvent => ({
      type: "PersonalDataRead",
      data: { resource: "recipient", ...(recipient === undefined ? {} : { recipient }) },
    });
    const before = [read(ANN), added({ username: "ann" }), read({ username: "ann" }), added({ id: "101" }), read()];
    const state = given(...before, read({ id: "101" }), attempted(ANN), read(ANN));
    const ann = findContact(state, ANN)!;
    expect([state.people.size, ann.positions, ann.reads]).toEqual([1, [2, 4, 7], [3, 6, 8]]);
    expect(positionsAbout(ann)).toEqual([2, 3, 4, 6, 7, 8]);
    expect(findContact(given(added(ANN)), ANN)?.reads).toBeUndefined();
  });

  test("imported by handle and by id is merged once both are known to match", () => {
    const state = given(added({ username: "ann" }), added({ id: "101" }), attempted(ANN));
    expect(state.people.size).toBe(1);
    for (const who of [{ id: "101" }, { username: "ann" }, ANN]) {
      expect(findContact(state, who)).toMatchObject({ ...ANN, status: "attempted" });
    }
  });

  test("is not confused with a recipient who takes over its handle", () => {
    const cy = { id: "103", username: "ann" };
    const state = given(added(ANN), sent(ANN), attempted(cy));
    expect(findContact(state, { id: "101" })).toMatchObject({ status: "sent" });
    expect(findContact(state, { id: "103" })).toMatchObject({ status: "attempted" });
    expect(findContact(state, { username: "ann" })).toMatchObject({ id: "103" });
  });

  test("is found by its new handle and its id after a change of handle", () => {
    const state = given(added(ANN), sent({ id: "101", username: "ann_b" }));
    expect(state.people.size).toBe(1);
    expect(findContact(state, { username: "ann_b" })).toMatchObject({ id: "101", username: "ann_b", status: "sent" });
  });

  test("is found by a former handle until another recipient takes it over", () => {
    const renamed = [added(ANN), sent({ id: "101", username: "ann_b" })];
    expect(findContact(given(...renamed), { username: "ANN" })).toMatchObject({ id: "101" });
    expect(findContact(given(...renamed), { id: "103", username: "ann" })).toBeUndefined();
    const state = given(added(ANN), attempted({ id: "103", username: "Ann" }));
    expect(findContact(state, { username: "ann" })).toMatchObject({ id: "103" });
    expect(findContact(state, { id: "101" })).not.toHaveProperty("username");
  });

  test("is not found by a former handle given in place of an id", () => {
    const state = given(
      added({ username: "ann" }),
      sent({ id: "101", username: "ann_b" }),
      sent({ id: "103", username: "ann" }),
    );
    expect(findContact(state, { id: "@ann" })).toBeUndefined();
    expect(findContact(state, { username: "ann" })).toMatchObject({ id: "103" });
  });

  test("gets no consent recorded for its former handle", () => {
    const state = given(
      added(ANN, { basis: "none" }),
      skipped({ id: "101", username: "ann_b" }, "no_consent"),
      added({ username: "ann" }, { fields: { company: "Acme" } }),
    );
    expect(findContact(state, { id: "101" })).toMatchObject({ basis: "none", fields: {} });
    expect(findContact(state, { username: "ann" })).toMatchObject({ basis: "opt_in", status: "open" });
    // Here a later message shows that the id and the handle belong to one recipient.
    const back = given(added(ANN), sent({ id: "101", username: "ann_b" }), added({ username: "ann" }), sent(ANN));
    expect(back.people.size).toBe(1);
  });

  test("stays separate from a later import of its former handle", () => {
    const renamed = { id: "101", username: "ann_b" };
    const other = { id: "103", username: "ann" };
    const state = given(
      added({ username: "ann" }),
      sent(ANN),
      skipped(renamed, "protected"),
      added({ username: "ann" }),
      attempted(other),
    );
    expect(state.people.size).toBe(2);
    expect(findContact(state, renamed)).toMatchObject({ status: "sent" });
    expect(findContact(state, other)).toMatchObject({ status: "attempted", basis: "opt_in" });
  });
});

describe("a suppression", () => {
  test("survives another import", () => {
    expect(findContact(given(suppressed(ANN), added(ANN, { basis: "dm_first" })), ANN)?.suppressed).toBe(true);
  });

  test.each([
    ["the handle", { username: "ann" }, { id: "101" }],
    ["the id", { id: "101" }, { username: "ann" }],
  ])("by %s applies to the contact after a merge", (_which, stopped, other) => {
    const state = given(suppressed(stopped), added(other), attempted(ANN));
    expect(findContact(state, ANN)?.suppressed).toBe(true);
  });

  test("applies to a recipient who is imported later with that handle", () => {
    const state = given(suppressed({ username: "ANN" }), added({ username: "ann" }), attempted(ANN));
    expect(findContact(state, { id: "101" })?.suppressed).toBe(true);
  });

  test("stays with the contact when its handle passes to another recipient", () => {
    const [renamed, other] = [
      { id: "101", username: "ann_b" },
      { id: "103", username: "ann" },
    ];
    const state = given(suppressed({ username: "ann" }), skipped(ANN, "suppressed"), attempted(other), sent(renamed));
    expect(findContact(state, renamed)?.suppressed).toBe(true);
    expect(findContact(state, other)?.suppressed).toBe(false);
  });

  test.each(["suppression", "retry"])("or a retry by a former handle applies to its last holder (%s)", (kind) => {
    const renamed = { id: "101", username: "ann_b" };
    const recipient = { username: "ANN" };
    const told: NewEvent =
      kind === "suppression" ? suppressed(recipient) : { type: "RecipientRetryAllowed", data: { recipient } };
    const before = [attempted(ANN), failed(ANN, false), skipped(renamed, "protected")];
    const means = (state: Contacts): string[] =>
      [...state.people.values()].flatMap(({ id = "?", ...person }) => (person.suppressed || person.again ? [id] : []));
    expect(means(given(...before, told))).toEqual(["101"]);
    const other = { id: "103", username: "ann" };
    const taken = [attempted(other), failed(other, false)];
    expect(means(given(...before, ...taken, told))).toEqual(["103"]);
  });

  test("is not lifted by an allowed retry", () => {
    const retry: NewEvent = { type: "RecipientRetryAllowed", data: { recipient: ANN } };
    expect(findContact(given(suppressed(ANN), retry), ANN)?.suppressed).toBe(true);
  });
});

describe("the state of a contact", () => {
  test.each([true, false])("is open after a failure only if it is retryable (%p)", (retry) => {
    expect(findContact(given(attempted(ANN), failed(ANN, retry)), ANN)?.status).toBe(retry ? "open" : "failed");
  });

  test("is open after a failure once an operator allows a retry", () => {
    const retry: NewEvent = { type: "RecipientRetryAllowed", data: { recipient: { username: "ann" } } };
    expect(findContact(given(attempted(ANN), failed(ANN, false), retry), ANN)?.status).toBe("open");
  });

  test("is in doubt after an outcome in doubt", () => {
    const doubt: NewEvent = {
      type: "DirectMessageInDoubt",
      data: { attempt_id: "a", run_id: "r", recipient: ANN, detail: "" },
    };
    expect(findContact(given(attempted(ANN), doubt), ANN)?.status).toBe("in_doubt");
  });

  test("stays sent after another import", () => {
    expect(findContact(given(sent(ANN), added(ANN)), ANN)?.status).toBe("sent");
  });

  test("stays sent when an imported handle is merged into it", () => {
    const met = skipped(ANN, "protected");
    const state = given(sent({ id: "101", username: "ann_b" }), added({ username: "ann" }), met);
    expect(state.people.size).toBe(1);
    expect(findContact(state, { username: "ann" })).toMatchObject({ id: "101", status: "sent", listed: true });
  });

  test.each([
    ["the id", { id: "101" }, { username: "ann" }],
    ["the handle", { username: "ann" }, { id: "101" }],
  ])("keeps all members of the contact by %s in a merge with one that a campaign skipped", (_which, known, other) => {
    const evidence = { consent_at: "2026-01-02", consent_source: "form", name: "Ann", timezone: "Asia/Tokyo" };
    const about = [
      added(known, { ...evidence, fields: { city: "Oslo" }, tracking: "granted" }),
      suppressed(known),
      skipped(known, "suppressed"),
    ];
    const skip = (campaign?: string): NewEvent => {
      const data = { run_id: "r", recipient: other, reason: "no_consent", ...(campaign && { campaign }) } as const;
      return { type: "DirectMessageSkipped", data };
    };
    const met: NewEvent = { type: "RecipientRequested", data: { run_id: "r", recipient: ANN } };
    for (const last of [[], [met]]) {
      const [whole, campaigns] = [skip(), skip("spring")].map((one) => findPerson(given(...about, one, ...last), ANN));
      const { campaigns: byCampaign, replaced: _spring, skipped: ofDefault, ...rest } = campaigns!;
      const { replaced: _default, skipped: _both, ...wanted } = whole!;
      expect(wanted).toMatchObject({ suppressed: true, listed: true, basis: "opt_in", name: "Ann" });
      expect(rest).toEqual(wanted);
      expect(ofDefault).toEqual(["suppressed"]);
      expect(byCampaign).toEqual({ spring: { status: "open", replied: false, again: false, skipped: ["no_consent"] } });
    }
  });

  test("keeps the consent of either contact in a merge", () => {
    const one = given(
      added({ username: "ann" }, { basis: "dm_first" }),
      added({ id: "101" }, { basis: "none" }),
      sent(ANN),
    );
    expect(findContact(one, ANN)?.basis).toBe("dm_first");
  });

  test("keeps basis and evidence after an import without a basis", () => {
    const first = added(ANN, { consent_at: "2026-01-02" });
    const data = { recipient: ANN, fields: {}, blank: [], source: "list" } as const;
    const second: NewEvent = { type: "RecipientAdded", data: { ...data, blank: [] } };
    const held = { basis: "opt_in", consent: { basis: "opt_in", at: "2026-01-02" } };
    expect(findContact(given(first, second), ANN)).toMatchObject(held);
  });

  test("loses its basis if another import withdraws it", () => {
    expect(findContact(given(added(ANN), added(ANN, { basis: "none" })), ANN)?.basis).toBe("none");
  });
});

describe("skips", () => {
  test("are recorded once per reason", () => {
    const state = given(
      skipped(ANN, "no_consent"),
      skipped(ANN, "no_consent"),
      skipped({ username: "ann" }, "protected"),
    );
    expect(findContact(state, ANN)?.skipped).toEqual(["no_consent", "protected"]);
  });

  test("are cleared by another import", () => {
    expect(findContact(given(skipped(ANN, "missing_field"), added(ANN)), ANN)?.skipped).toEqual([]);
  });

  test("are kept from both contacts in a merge", () => {
    const state = given(skipped({ username: "ann" }, "no_consent"), skipped({ id: "101" }, "protected"), sent(ANN));
    expect(findContact(state, ANN)?.skipped.toSorted()).toEqual(["no_consent", "protected"]);
  });
});

describe("template fields", () => {
  test("are counted by the number of contacts that have them", () => {
    const bea = { id: "102" };
    const state = given(
      added(ANN, { fields: { company: "Acme", city: "Bern" } }),
      added(bea, { fields: { company: "Beta" } }),
      added(ANN, { fields: { company: "Acme" } }),
    );
    expect(state.fields).toEqual(new Map([["company", 2]]));
  });

  test("are kept if a row omits them and removed if it leaves them blank", () => {
    const state = given(
      added(ANN, { name: "Ann", timezone: "UTC", fields: { company: "Acme", city: "Bern" }, blank: [] }),
      added(ANN, { fields: { role: "CTO" }, blank: ["city", "name"] }),
    );
    const contact = findContact(state, ANN);
    expect(contact).toMatchObject({ timezone: "UTC", fields: { company: "Acme", role: "CTO" } });
    expect(contact).not.toHaveProperty("name");
    expect(state.fields).toEqual(
      new Map([
        ["company", 1],
        ["role", 1],
      ]),
    );
  });

  test("are counted once after a merge, with the newer contact's values", () => {
    const state = given(
      added({ username: "ann" }, { fields: { company: "Old", city: "Bern" } }),
      added({ id: "101" }, { fields: { company: "New" } }),
      attempted(ANN),
    );
    expect(findContact(state, ANN)?.fields).toEqual({ company: "New", city: "Bern" });
    expect(state.fields).toEqual(
      new Map([
        ["company", 1],
        ["city", 1],
      ]),
    );
  });

  test("can be named like a built-in property of objects", () => {
    const state = given(
      added({ username: "ann" }, { fields: { tostring: "x", toString: "y" } }),
      added({ id: "101" }),
      attempted(ANN),
    );
    expect(state.fields).toEqual(
      new Map([
        ["tostring", 1],
        ["toString", 1],
      ]),
    );
  });
});

describe("a recipient who writes to us", () => {
  const received = (recipient: Recipient, received_at: string): NewEvent => {
    return { type: "DirectMessageReceived", data: { recipient, message_id: "m", received_at } };
  };
  const BEFORE = "2026-11-20T09:00:00.000Z";
  const AFTER = "2026-11-20T11:00:00.000Z";

  test("first has consented, and no import revokes that", () => {
    const state = given(
      added(ANN, { basis: "none" }),
      received(ANN, BEFORE),
      added({ username: "ann" }, { basis: "none" }),
    );
    expect(findContact(state, ANN)).toMatchObject({ basis: "dm_first", inbound: true, received: true, replied: false });
  });

  test("after our message has replied, which is no consent", () => {
    const state = given(added(ANN, { basis: "none" }), attempted(ANN), sent(ANN), received(ANN, AFTER));
    expect(findContact(state, ANN)).toMatchObject({ basis: "none", inbound: false, received: true, replied: true });
  });

  test("after a message that was certainly not sent counts as writing first", () => {
    const lost = (frees_quota: boolean): NewEvent => {
      const outcome = { attempt_id: "a", run_id: "r", recipient: ANN, detail: "", retry: false };
      return { type: "DirectMessageFailed", data: { ...outcome, reason: "not_delivered", frees_quota } };
    };
    const state = (frees: boolean) => given(attempted(ANN), lost(frees), received(ANN, AFTER));
    expect(findContact(state(true), ANN)).toMatchObject({ basis: "dm_first", inbound: true, replied: false });
    expect(findContact(state(false), ANN)).toMatchObject({ basis: "none", inbound: false, replied: true });
  });

  test("before our message counts as writing first, even if read later", () => {
    const state = given(attempted(ANN), sent(ANN), received(ANN, BEFORE));
    expect(findContact(state, ANN)).toMatchObject({ inbound: true, replied: false });
  });

  test("keeps basis and received message in a merge", () => {
    const state = given(received({ username: "ann" }, BEFORE), added({ id: "101" }, { basis: "none" }), attempted(ANN));
    expect(state.people.size).toBe(1);
    expect(findContact(state, ANN)).toMatchObject({ basis: "dm_first", inbound: true, received: true });
  });
});

describe("a suppression", () => {
  test("by hash is kept even without any other data about the recipient", () => {
    const marked = { recipient: {}, reason: "opt_out", hashes: ["x", "y"] } as const;
    const state = given(
      { type: "RecipientSuppressed", data: { ...marked, hashes: [...marked.hashes] } },
      added({}, { fields: { company: "Acme" } }),
      added(ANN),
    );
    expect(state.fields.size).toBe(0);
    expect([...state.hashes.keys()]).toEqual(["x", "y"]);
    expect([...state.people.keys()]).toEqual(["101"]);
    expect(findContact(state, ANN)?.suppressed).toBe(false);
  });
});

describe("consent", () => {
  const FORM = {
    consent_at: "2026-03-02",
    consent_source: "https://shop.example/form",
    consent_text: "Yes, version 3",
  };
  const EVIDENCE = { at: FORM.consent_at, source: FORM.consent_source, text: FORM.consent_text };
  const LIST = { tracking_at: "2026-03-03", tracking_source: "list", tracking_text: "I agree" };
  const consented = (recipient: Recipient, more: Omit<DataOf<"ConsentRecorded">, "recipient">): NewEvent => {
    return { type: "ConsentRecorded", data: { recipient, ...more } };
  };
  const linked = (...codes: string[]): NewEvent => {
    const data = { attempt_id: "a", run_id: "r", recipient: ANN, text: "Hi", variant: "A", day: "2026-11-20" };
    const personal_links = codes.map((code) => ({ code, link: "go.example/shared" }));
    return { type: "DirectMessageAttempted", data: { ...data, personal_links } };
  };
  const received = (received_at: string): NewEvent => {
    return { type: "DirectMessageReceived", data: { recipient: ANN, message_id: "m", received_at } };
  };

  test("from an import or a record is stored with its evidence", () => {
    expect(findContact(given(added(ANN)), ANN)).toMatchObject({ basis: "opt_in", tracking: { status: "unknown" } });
    const tracking = {
      status: "granted",
      at: LIST.tracking_at,
      source: LIST.tracking_source,
      text: LIST.tracking_text,
    };
    const held = { basis: "opt_in", consent: { basis: "opt_in", ...EVIDENCE }, tracking };
    const told = { ...FORM, tracking: "granted", ...LIST } as const;
    expect(findContact(given(added(ANN, told)), ANN)).toMatchObject(held);
    const state = given(added(ANN, { basis: "none" }), consented({ username: "ANN" }, { basis: "opt_in", ...told }));
    expect(findContact(state, ANN)).toMatchObject({ ...held, positions: [1, 2] });
  });

  test("is replaced by a later record with evidence or another basis", () => {
    const given1 = added(ANN, FORM);
    const later = given(given1, consented(ANN, { basis: "opt_in", consent_source: "form" }));
    expect(findContact(later, ANN)?.consent).toEqual({ basis: "opt_in", source: "form" });
    const gone = given(given1, consented(ANN, { basis: "dm_first" }));
    expect(findContact(gone, ANN)?.consent).toBeNull();
    expect(findContact(given(given1, consented(ANN, { basis: "opt_in" })), ANN)?.consent).toMatchObject(EVIDENCE);
    expect(findContact(given(given1, consented(ANN, { tracking: "denied" })), ANN)).toMatchObject({
      consent: EVIDENCE,
      tracking: { status: "denied" },
    });
  });

  test("to tracking changes only with a row that states another one", () => {
    const granted = added(ANN, { tracking: "granted", ...LIST });
    const kept = { status: "granted", at: "2026-03-03" } as const;
    expect(findContact(given(granted, added(ANN)), ANN)?.tracking).toMatchObject(kept);
    expect(findContact(given(granted, added(ANN, { tracking: "granted" })), ANN)?.tracking).toMatchObject(kept);
    expect(findContact(given(granted, added(ANN, { tracking: "denied" })), ANN)?.tracking).toEqual({
      status: "denied",
    });
  });

  test.each([
    ["2026-04-01", { tracking: "granted", tracking_at: "2026-03-03" }, "denied"],
    ["2026-04-01T10:00:00.000Z", { tracking: "granted", tracking_at: "2026-04-01" }, "denied"],
    ["2026-04-01", { tracking: "granted", tracking_at: "2026-04-01T08:00:00.000Z" }, "denied"],
    ["2026-04-01", { tracking: "granted", tracking_at: "2026-04-01T23:59:59.999Z" }, "denied"],
    ["2026-04-01", { tracking: "granted", tracking_at: "2026-04-02" }, "granted"],
    ["2026-04-01T00:00:00.000Z", { tracking: "granted", tracking_at: "2026-04-01" }, "denied"],
    ["2026-04-01T08:00:00.000Z", { tracking: "granted", tracking_at: "2026-04-01T08:00Z" }, "denied"],
    ["2026-04-01T08:00Z", { tracking: "granted", tracking_at: "2026-04-01T08:00:00.001Z" }, "granted"],
    ["2026-04-01T10:00+02:00", { tracking: "granted", tracking_at: "2026-04-01T09:00Z" }, "granted"],
    ["2026-04-01", { tracking: "granted" }, "denied"],
    [undefined, { tracking: "granted", tracking_at: "2026-05-01" }, "denied"],
    ["2026-04-01", { tracking: "unknown", tracking_at: "2026-05-01" }, "denied"],
    ["2026-04-01", { tracking: "granted", tracking_at: "2026-05-01" }, "granted"],
  ] as const)("to tracking, denied at %s, is granted again only by a newer list: %j", (at, row, status) => {
    const denial = { tracking: "denied", ...(at === undefined ? {} : { tracking_at: at }) } as const;
    const denied = [added(ANN, { tracking: "granted" }), consented(ANN, denial)];
    const contact = findContact(given(...denied, added(ANN, { ...row, fields: { city: "Rome" } })), ANN);
    expect(contact).toMatchObject({ fields: { city: "Rome" }, tracking: { status } });
    if (status === "denied") expect(contact?.tracking).toEqual({ status, ...(at === undefined ? {} : { at }) });
    // A consent that an operator records for this person replaces the denial, even without a date.
    expect(findContact(given(...denied, consented(ANN, { tracking: "granted" })), ANN)?.tracking.status).toBe(
      "granted",
    );
  });

  test.each([
    ["unknown", "granted", "granted"],
    ["granted", "denied", "denied"],
    ["unknown", "denied", "denied"],
  ] as const)("to tracking of two merged contacts: %s and %s gives %s", (one, other, both) => {
    for (const [byHandle, byId] of [
      [one, other],
      [other, one],
    ] as const) {
      const state = given(added({ username: "ann" }, { tracking: byHandle }), added({ id: "101" }, { tracking: byId }));
      expect(findPerson(state, ANN)?.tracking.status).toBe(both);
      expect(
        findContact(
          given(
            added({ username: "ann" }, { tracking: byHandle }),
            added({ id: "101" }, { tracking: byId }),
            sent(ANN),
          ),
          ANN,
        )?.tracking.status,
      ).toBe(both);
    }
  });

  test("keeps the newer evidence of the resulting basis in a merge", () => {
    const old = { consent_at: "2025-01-01", tracking: "granted", tracking_at: "2025-01-01" } as const;
    const merged = (one: Partial<DataOf<"RecipientAdded">>, other: Partial<DataOf<"RecipientAdded">>) =>
      findContact(given(added({ username: "ann" }, one), added({ id: "101" }, other), sent(ANN)), ANN);
    const told = { ...FORM, tracking: "granted", ...LIST } as const;
    for (const contact of [merged(old, told), merged(told, old)]) {
      expect(contact).toMatchObject({ consent: EVIDENCE, tracking: { status: "granted", at: "2026-03-03" } });
    }
    const withdrawn = { basis: "none", ...FORM } as const;
    for (const contact of [merged(withdrawn, {}), merged({}, withdrawn)]) {
      expect(contact?.basis).toBe("opt_in");
      expect(contact?.consent).toBeNull();
    }
  });

  test("by writing first is dated by the earliest message and survives later records", () => {
    const state = given(
      received("2026-11-20T09:00:00.000Z"),
      received("2026-11-19T09:00:00.000Z"),
      received("2026-11-21T09:00:00.000Z"),
      consented(ANN, { basis: "none" }),
      consented(ANN, { basis: "opt_in", ...FORM }),
      consented(ANN, { tracking: "denied" }),
    );
    expect(findContact(state, ANN)).toMatchObject({
      basis: "dm_first",
      wrote_at: "2026-11-19T09:00:00.000Z",
      consent: { basis: "opt_in", ...EVIDENCE },
    });
  });

  test("recorded for an unknown name applies to the recipient who has it", () => {
    const state = given(consented({ username: "Ann" }, { tracking: "denied" }), sent(ANN));
    expect(findContact(state, ANN)).toMatchObject({ listed: false, tracking: { status: "denied" }, status: "sent" });
  });

  test("recorded for the basis clears only the skip for missing consent", () => {
    const before = [skipped(ANN, "no_consent"), skipped(ANN, "missing_field")];
    const after = (data: Omit<DataOf<"ConsentRecorded">, "recipient">) =>
      findContact(given(...before, consented(ANN, data)), ANN)?.skipped;
    expect(after({ basis: "opt_in" })).toEqual(["missing_field"]);
    expect(after({ tracking: "denied" })).toEqual(["no_consent", "missing_field"]);
  });

  test("recorded for an erased recipient creates no contact", () => {
    const erased = { id: "erased:1", username: "erased:1" };
    const state = given(consented(erased, { basis: "opt_in" }), consented(erased, { basis: "none" }));
    expect(state.people.size).toBe(0);
  });

  test("revoked for tracking leaves the contact and its personal link codes unchanged", () => {
    const erased: NewEvent = { type: "PersonForgotten", data: { hashes: [], keys: ["p1"], scope: "tracking" } };
    const state = given(linked("c1", "c2"), sent(ANN), linked("c3"), consented(ANN, { tracking: "denied" }), erased);
    expect(findContact(state, ANN)).toMatchObject({ suppressed: false, personal_links: ["c1", "c2", "c3"] });
    expect(state.hashes.size).toBe(0);
  });
});

describe("an allowed retry", () => {
  const retry: NewEvent = { type: "RecipientRetryAllowed", data: { recipient: ANN } };

  test("reopens a contact after a failure", () => {
    expect(findContact(given(attempted(ANN), failed(ANN, false), retry), ANN)).toMatchObject({
      status: "open",
      again: true,
    });
  });

  test("has no effect on a contact with a later attempt", () => {
    const state = given(attempted(ANN), failed(ANN, false), retry, attempted(ANN), retry);
    expect(findContact(state, ANN)).toMatchObject({ status: "attempted", again: false });
    expect(findContact(given(attempted(ANN), sent(ANN), retry), ANN)).toMatchObject({ status: "sent", again: false });
  });

  test("for a campaign reopens that one alone, if its message failed", () => {
    const spring = { ...attempted(ANN), data: { ...attempted(ANN).data, campaign: "spring" } } as NewEvent;
    const named = (campaign: string): NewEvent => ({ ...retry, data: { recipient: ANN, campaign } });
    const failedFirst = [attempted(ANN), failed(ANN, false), spring];
    const open = { status: "open", again: true };
    const state = given(...failedFirst, named("default"));
    expect(findContact(state, ANN)).toMatchObject({ status: "attempted", campaigns: { default: open } });
    const untouched = { status: "attempted", again: false, campaigns: { default: { status: "failed", again: false } } };
    for (const campaign of ["spring", "autumn"])
      expect(findContact(given(...failedFirst, named(campaign)), ANN)).toMatchObject(untouched);
  });

  test("is not needed after a retryable failure", () => {
    expect(findContact(given(attempted(ANN), failed(ANN, true)), ANN)).toMatchObject({ status: "open", again: true });
  });
});

test("in any history, ids, handles and field counts agree with the contacts", () => {
  fc.assert(
    fc.property(histories(), ({ events }) => {
      const state = fold(contacts, contacts.initial(), events);
      for (const [id, key] of state.ids) expect(state.people.get(key)?.id).toBe(id);
      for (const [handle, key] of state.handles) {
        expect(state.people.get(key)?.username?.toLowerCase()).toBe(handle);
        expect(state.former.get(handle)).not.toBe(key);
      }
      for (const key of state.former.values()) expect(state.people.get(key)?.id).toBeDefined();
      for (const [key, { id, username }] of state.people) {
        expect(id ?? username).toBeDefined();
        if (id !== undefined) expect(state.ids.get(id) ?? id).toBe(key);
        if (username !== undefined) expect(state.handles.get(username.toLowerCase())).toBe(key);
      }
      const counts = new Map<string, number>();
      for (const { fields } of state.people.values()) {
        for (const field of Object.keys(fields)) counts.set(field, (counts.get(field) ?? 0) + 1);
      }
      expect(state.fields).toEqual(counts);
    }),
    { numRuns: countCases(1_000) },
  );
});

test("in any history, the current state gives the number of contacts at earlier positions", () => {
  let merges = 0;
  fc.assert(
    fc.property(histories(), ({ events }) => {
      let state = contacts.initial();
      const sizes = events.map((event) => (state = contacts.evolve(state, event)).people.size);
      expect(events.map(({ position }) => countPeopleAt(state, position))).toEqual(sizes);
      merges += state.merged.length;
    }),
    { numRuns: countCases(1_000) },
  );
  expect(merges).toBeGreaterThan(countSituations(20));
});

test("in any history, a suppression by id lasts and a sent message is recorded as sent", () => {
  fc.assert(
    fc.property(histories(), ({ events }) => {
      const stopped = new Set<string>();
      let state = contacts.initial();
      for (const event of events) {
        state = contacts.evolve(state, event);
        if (event.type === "RecipientSuppressed" && event.data.recipient?.id !== undefined) {
          stopped.add(event.data.recipient.id);
        }
        for (const id of stopped) expect(findContact(state, { id })?.suppressed).toBe(true);
        if (event.type === "DirectMessageSent") {
          expect(findContact(state, { id: event.data.recipient.id })?.status).toBe("sent");
        }
      }
    }),
    { numRuns: countCases(1_000) },
  );
});
