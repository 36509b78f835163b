// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { contacts as contactsProjection } from "../../projections/contacts.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { allowRetry, decideRetry } from "../../src/recipients/allow-retry.ts";
import { recipientAmong } from "../../src/recipients/resolve-recipient.ts";
import { decideSuppression, suppress } from "../../src/recipients/suppress.ts";
import { createSuppressionHashes } from "../../src/privacy/suppression-hashes.ts";
import { startProjector, type Projector } from "../../src/projector/projector.ts";
import { given } from "../harness/in-process/given-when-then-for-deciders.ts";
import { METADATA, openMemoryLog, type MemoryLog, toStateContext } from "../harness/in-process/temporary-log.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";

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

  test.each(["@Ann", "ann", "https://x.com/ann"])("holds the hashes of all names known for %s", (subject) => {
    given(LISTED)
      .when(suppressing(subject))
      .thenEvents({ type: "RecipientSuppressed", data: { reason: "by_hand", hashes: expect.arrayContaining(ofAnn) } });
  });

  test("treats a short number as the id of a known recipient, otherwise as a handle", () => {
    given(LISTED)
      .when(suppressing("101"))
      .thenEvents({ data: { recipient: { id: "101" } } });
    given()
      .when(suppressing("101"))
      .thenEvents({ data: { recipient: { username: "101" } } });
  });

  test("is not repeated for a recipient suppressed by all names", () => {
    given(LISTED, BY_HAND).when(suppressing("ann")).thenEvents();
  });

  test("is recorded for the other names of a recipient who opted out by one", () => {
    given(LISTED, OPTED_OUT)
      .when(suppressing("ann"))
      .thenEvents({ data: { hashes: expect.arrayContaining(ofAnn) } });
  });
});

describe("a retry", () => {
  const retrying =
    (subject: string, campaign?: string) =>
    ({ contacts }: { readonly contacts: ReturnType<typeof contactsProjection.initial> }) =>
      decideRetry(contacts, subject, campaign);

  test("is allowed after a failure, once", () => {
    const allowed: NewEvent = { type: "RecipientRetryAllowed", data: { recipient: { username: "ann" } } };
    given(LISTED, ATTEMPTED, FAILED).when(retrying("@ann")).thenEvents(allowed);
    given(LISTED, ATTEMPTED, FAILED, allowed).when(retrying("ann")).thenRefused("nothing_to_retry");
  });

  test("is allowed in the campaign that the operator names, also an earlier one", () => {
    const inSpring = [ATTEMPTED, FAILED].map((event) => ({
      ...event,
      data: { ...event.data, attempt_id: "b", campaign: "spring" },
    })) as NewEvent[];
    const recipient = { username: "ann" };
    const allowed = (campaign: string): NewEvent => ({ type: "RecipientRetryAllowed", data: { recipient, campaign } });
    const both = [LISTED, ATTEMPTED, FAILED, ...inSpring];
    given(...both)
      .when(retrying("ann", "default"))
      .thenEvents(allowed("default"));
    const retried = [...both, allowed("default")];
    given(...retried)
      .when(retrying("ann", "default"))
      .thenRefused("nothing_to_retry");
    given(...retried)
      .when(retrying("ann", "spring"))
      .thenEvents(allowed("spring"));
    given(...retried, allowed("spring"))
      .when(retrying("ann"))
      .thenRefused("nothing_to_retry");
    given(...both)
      .when(retrying("ann", "autumn"))
      .thenRefused("nothing_to_retry");
  });

  test("is refused for an unknown or suppressed recipient, or without a failure", () => {
    given(LISTED).when(retrying("bob")).thenRefused("unknown_recipient");
    given(LISTED).when(retrying("ann")).thenRefused("nothing_to_retry");
    given(LISTED, ATTEMPTED, FAILED, OPTED_OUT).when(retrying("ann")).thenRefused("suppressed");
  });
});

describe("concurrent decisions", () => {
  let log: MemoryLog;
  let projector: Projector;
  beforeEach(async () => {
    log = await openMemoryLog();
    projector = log.use(await startProjector(log.store));
    await log.eventLog.append(STREAMS.outreach, [LISTED, ATTEMPTED, FAILED], METADATA);
  });
  afterEach(() => log[Symbol.asyncDispose]());

  test("refuse a retry if the recipient is suppressed before its append", async () => {
    const context = { ...toStateContext({ ...log, projector }), hashesOf };
    let isFirst = true;
    const eventLog: typeof log.eventLog = {
      ...log.eventLog,
      async append(...args) {
        if (isFirst) {
          isFirst = false;
          await suppress(context, "ann", { caller: "another" });
        }
        return log.eventLog.append(...args);
      },
    };
    const deps = { ...context, eventLog, sleep: async () => {} };
    expect(await allowRetry(deps, { recipient: "ann" }, METADATA)).toBe("suppressed");
    expect(await log.events("RecipientRetryAllowed")).toEqual([]);
    expect(await log.events("RecipientSuppressed")).toMatchObject([{ meta: { caller: "another" } }]);
  });

  test("accept two suppressions of one recipient, and report a third as repeated", async () => {
    const deps = { ...toStateContext({ ...log, projector }), hashesOf };
    const both = await Promise.all([suppress(deps, "ann", METADATA), suppress(deps, "101", METADATA)]);
    expect(both.map(({ isKnown }) => isKnown)).toEqual([true, true]);
    expect(await suppress(deps, "ann", METADATA)).toEqual({ isKnown: true, repeated: true });
    expect(await suppress(deps, "nobody_yet", METADATA)).toEqual({ isKnown: false, repeated: false });
  });
});
