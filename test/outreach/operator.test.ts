// On the memory harness.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { contacts as contactsProjection } from "../../projections/contacts.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { allowRetry, decideRetry } from "../../src/recipients/allow-retry.ts";
import { recipientAmong } from "../../src/recipients/resolve-recipient.ts";
import { decideSuppression, suppress, createSuppressionHashes } from "../../src/recipients/suppress.ts";
import { startProjector, type Projector } from "../../src/projector/projector.ts";
import { given } from "../harness/memory/decider.ts";
import { METADATA, openMemoryLog, type MemoryLog } from "../harness/memory/log.ts";
import { addedOf } from "../harness/memory/new-events.ts";

const ANN = { id: "101", username: "ann" };
const ATTEMPT = { attempt_id: "a", run_id: "r", recipient: ANN };
const hashesOf = createSuppressionHashes(new Uint8Array(32).fill(5));
const ofAnn = [...hashesOf(ANN)];

const LISTED: NewEvent = addedOf(ANN);
const ATTEMPTED: NewEvent = {
  type: "DirectMessageAttempted",
  data: { ...ATTEMPT, text: "Hi", variant: "A", day: "2026-03-01" },
};
const FAILED: NewEvent = {
  type: "DirectMessageFailed",
  data: { ...ATTEMPT, reason: "rejected", detail: "", frees_quota: true, retry: false },
};
const OPTED_OUT: NewEvent = { type: "RecipientSuppressed", data: { recipient: ANN, reason: "opt_out" } };
const BY_HAND: NewEvent = {
  type: "RecipientSuppressed",
  data: { recipient: { username: "ann" }, reason: "by_hand", hashes: ofAnn },
};

describe("a suppression", () => {
  const suppressing =
    (subject: string) =>
    ({ contacts }: { readonly contacts: ReturnType<typeof contactsProjection.initial> }) =>
      decideSuppression(contacts, { recipient: recipientAmong(contacts, subject), reason: "by_hand" }, hashesOf);

  test.each(["@Ann", "ann", "https://x.com/ann"])("of %s hashes every name that is known of the person", (subject) => {
    given(LISTED)
      .when(suppressing(subject))
      .thenEvents({ type: "RecipientSuppressed", data: { reason: "by_hand", hashes: expect.arrayContaining(ofAnn) } });
  });

  test("by the id of a known recipient means them, however short it is", () => {
    given(LISTED)
      .when(suppressing("101"))
      .thenEvents({ data: { recipient: { id: "101" } } });
    given()
      .when(suppressing("101"))
      .thenEvents({ data: { recipient: { username: "101" } } });
  });

  test("that the log holds with all names is not recorded again", () => {
    given(LISTED, BY_HAND).when(suppressing("ann")).thenEvents();
  });

  test("of a recipient who opted out by one name is recorded for the others", () => {
    given(LISTED, OPTED_OUT)
      .when(suppressing("ann"))
      .thenEvents({ data: { hashes: expect.arrayContaining(ofAnn) } });
  });
});

describe("a retry", () => {
  const retrying =
    (subject: string) =>
    ({ contacts }: { readonly contacts: ReturnType<typeof contactsProjection.initial> }) =>
      decideRetry(contacts, subject);

  test("is allowed after a failure, once", () => {
    const allowed: NewEvent = { type: "RecipientRetryAllowed", data: { recipient: { username: "ann" } } };
    given(LISTED, ATTEMPTED, FAILED).when(retrying("@ann")).thenEvents(allowed);
    given(LISTED, ATTEMPTED, FAILED, allowed).when(retrying("ann")).thenRefused("nothing_to_retry");
  });

  test("is refused of a stranger, of a recipient whose message did not fail, and of one who is suppressed", () => {
    given(LISTED).when(retrying("bob")).thenRefused("unknown_recipient");
    given(LISTED).when(retrying("ann")).thenRefused("nothing_to_retry");
    given(LISTED, ATTEMPTED, FAILED, OPTED_OUT).when(retrying("ann")).thenRefused("suppressed");
  });
});

describe("on the log", () => {
  let log: MemoryLog;
  let projector: Projector;
  beforeEach(async () => {
    log = await openMemoryLog();
    projector = log.use(await startProjector(log.store));
    await log.eventLog.append(STREAMS.outreach, [LISTED, ATTEMPTED, FAILED], METADATA);
  });
  afterEach(() => log[Symbol.asyncDispose]());

  test("a retry of a recipient who is suppressed while it is decided is refused", async () => {
    let isFirst = true;
    const eventLog: typeof log.eventLog = {
      ...log.eventLog,
      async append(...args) {
        if (isFirst) {
          isFirst = false;
          await suppress({ ...log, projector, hashesOf }, "ann", { caller: "another" });
        }
        return log.eventLog.append(...args);
      },
    };
    const deps = { eventLog, projector, sleep: async () => {}, random: () => 0 };
    expect(await allowRetry(deps, "ann", METADATA)).toBe("suppressed");
    expect(await log.events("RecipientRetryAllowed")).toEqual([]);
    expect(await log.events("RecipientSuppressed")).toMatchObject([{ meta: { caller: "another" } }]);
  });

  test("two suppressions of one person at the same time both stand, and a third finds nothing left to do", async () => {
    const deps = { ...log, projector, hashesOf };
    const both = await Promise.all([suppress(deps, "ann", METADATA), suppress(deps, "101", METADATA)]);
    expect(both.map(({ isKnown }) => isKnown)).toEqual([true, true]);
    expect(await suppress(deps, "ann", METADATA)).toEqual({ isKnown: true, repeated: true });
    expect(await suppress(deps, "nobody_yet", METADATA)).toEqual({ isKnown: false, repeated: false });
  });
});
