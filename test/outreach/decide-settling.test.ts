// On the memory harness.
import { describe, test } from "bun:test";
import type { NewEvent } from "../../src/log/event-log.ts";
import type { InboxMessage } from "../../src/networks/network.ts";
import { decideAbandoned } from "../../src/outreach/recover-dead-run.ts";
import type { OutcomeEvent } from "../../src/outreach/decide.ts";
import { decideReceived } from "../../src/outreach/inbox.ts";
import type { OutreachState } from "../../src/outreach/decide.ts";
import { decideRecorded } from "../../src/outreach/send.ts";
import { given } from "../harness/memory/decider.ts";
import { RULES } from "../harness/memory/outreach.ts";

const ANN = { id: "7", username: "ann" };
const ATTEMPT = { attempt_id: "a", run_id: "r", recipient: ANN };
const AT = Date.UTC(2026, 2, 1, 8);

const AUTHORIZED: NewEvent = {
  type: "AccountAuthorized",
  data: {
    user: { id: "1", username: "us", name: "Us" },
    scopes: [],
    expires_at: "2026-03-01T10:00:00.000Z",
  },
};
const STARTED: NewEvent = { type: "RunStarted", data: { run_id: "r", dry_run: false } };
const ATTEMPTED: NewEvent = {
  type: "DirectMessageAttempted",
  data: { ...ATTEMPT, text: "Hi Ann", variant: "A", day: "2026-03-01" },
};
const SENT: OutcomeEvent = { type: "DirectMessageSent", data: { ...ATTEMPT, message_id: "m", settled_by: "lookup" } };
const IN_DOUBT: OutcomeEvent = { type: "DirectMessageInDoubt", data: { ...ATTEMPT, detail: "time-out" } };
const SUPPRESSED: NewEvent = {
  type: "RecipientSuppressed",
  data: { recipient: ANN, reason: "by_hand", hashes: [...RULES.hashes(ANN)] },
};

describe("the outcome of an attempt", () => {
  const recorded =
    (outcome: OutcomeEvent, ...more: NewEvent[]) =>
    ({ run }: OutreachState) =>
      decideRecorded(run, outcome, more);

  test("given an attempt without one, it is recorded with what follows from it", () => {
    given(STARTED, ATTEMPTED).when(recorded(SENT, SUPPRESSED)).thenEvents(SENT, SUPPRESSED);
  });

  test("given an attempt that has one, nothing is, whichever process looks at it", () => {
    given(STARTED, ATTEMPTED, SENT).when(recorded(IN_DOUBT)).thenEvents();
    given(STARTED, ATTEMPTED, SENT).when(recorded(SENT, SUPPRESSED)).thenEvents();
  });

  test("given a doubt, it is settled, and not doubted again", () => {
    given(STARTED, ATTEMPTED, IN_DOUBT).when(recorded(IN_DOUBT)).thenEvents();
    given(STARTED, ATTEMPTED, IN_DOUBT).when(recorded(SENT)).thenEvents(SENT);
  });
});

describe("the run of a dead process", () => {
  test("given one in progress, it is closed with what it came to", () => {
    given(STARTED, ATTEMPTED, SENT)
      .when(({ run }) => decideAbandoned(run))
      .thenEvents({ type: "RunAbandoned", data: { run_id: "r", sent: 1, skipped: 0, failed: 0, in_doubt: 0 } });
  });

  test("given none, nothing is: another process closed it", () => {
    const ended: NewEvent = {
      type: "RunAbandoned",
      data: { run_id: "r", sent: 0, skipped: 0, failed: 0, in_doubt: 0 },
    };
    given(STARTED, ended)
      .when(({ run }) => decideAbandoned(run))
      .thenEvents();
  });
});

describe("what the inbox says", () => {
  let ids = 100;
  const message = (text: string, more: Partial<InboxMessage> = {}): InboxMessage => ({
    id: String(ids++),
    senderId: ANN.id,
    senderUsername: ANN.username,
    createdAt: AT,
    text,
    ...more,
  });
  const rules = {
    rules: RULES,
    readWish: (text: string) => (text === "stop" ? ("stop" as const) : undefined),
    isTrackingOptOut: () => false,
  };
  /** `messages` are newest first, as networks list them. */
  const reading = (...messages: InboxMessage[]) =>
    given(AUTHORIZED).when((state) => decideReceived(state, rules, messages));
  const received = { type: "DirectMessageReceived", data: { recipient: ANN } };
  const optedOut = { type: "RecipientSuppressed", data: { recipient: ANN, reason: "opt_out" } };

  test("given a stranger's messages, that they wrote is recorded once", () => {
    reading(message("hello again"), message("hello")).thenEvents(received);
  });

  test("given a wish to be left alone, the person is suppressed, once and behind their message", () => {
    reading(message("stop"), message("stop")).thenEvents(received, optedOut);
  });

  test("given a message to a group, it is no consent, but a wish all the same", () => {
    reading(message("hello", { inGroup: true })).thenEvents();
    reading(message("stop", { inGroup: true })).thenEvents(optedOut);
  });

  test("given our own messages, they say nothing", () => {
    reading(message("stop", { senderId: "1", senderUsername: "us" })).thenEvents();
  });

  test("given what is known already, nothing is recorded again", () => {
    const wrote: NewEvent = {
      type: "DirectMessageReceived",
      data: { recipient: ANN, message_id: "1", received_at: "2026-03-01T07:00:00.000Z" },
    };
    given(AUTHORIZED, wrote, SUPPRESSED)
      .when((state) => decideReceived(state, rules, [message("stop")]))
      .thenEvents();
  });

  test("given a message behind ours, it is a reply, and the first one counts", () => {
    given(AUTHORIZED, STARTED, ATTEMPTED, SENT)
      .when((state) => decideReceived(state, rules, [message("more"), message("thanks")]))
      .thenEvents(received);
  });
});
