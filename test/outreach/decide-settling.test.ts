// These tests run parts of the service inside the test process.
import { describe, test } from "bun:test";
import type { NewEvent } from "../../src/log/event-log.ts";
import type { InboxMessage } from "../../src/networks/network.ts";
import { decideAbandoned } from "../../src/outreach/recover-dead-run.ts";
import type { OutcomeEvent } from "../../src/outreach/outcomes/decide-send-outcome.ts";
import { decideReceived } from "../../src/outreach/read-and-record-inbox-messages.ts";
import type { OutreachState } from "../../src/outreach/decide.ts";
import { decideRecorded } from "../../src/outreach/send.ts";
import { given } from "../harness/in-process/given-when-then-for-deciders.ts";
import { RULES } from "../harness/in-process/simulated-outreach-processes.ts";

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

  test("is recorded with its consequences if the attempt has none", () => {
    given(STARTED, ATTEMPTED).when(recorded(SENT, SUPPRESSED)).thenEvents(SENT, SUPPRESSED);
  });

  test("is not recorded if the attempt has one", () => {
    given(STARTED, ATTEMPTED, SENT).when(recorded(IN_DOUBT)).thenEvents();
    given(STARTED, ATTEMPTED, SENT).when(recorded(SENT, SUPPRESSED)).thenEvents();
  });

  test("settles a doubt, but does not repeat it", () => {
    given(STARTED, ATTEMPTED, IN_DOUBT).when(recorded(IN_DOUBT)).thenEvents();
    given(STARTED, ATTEMPTED, IN_DOUBT).when(recorded(SENT)).thenEvents(SENT);
  });
});

describe("the run of a dead process", () => {
  test("is closed with its counts while it is in progress", () => {
    given(STARTED, ATTEMPTED, SENT)
      .when(({ run }) => decideAbandoned(run))
      .thenEvents({ type: "RunAbandoned", data: { run_id: "r", sent: 1, skipped: 0, failed: 0, in_doubt: 0 } });
  });

  test("is not closed again after another process closed it", () => {
    const ended: NewEvent = {
      type: "RunAbandoned",
      data: { run_id: "r", sent: 0, skipped: 0, failed: 0, in_doubt: 0 },
    };
    given(STARTED, ended)
      .when(({ run }) => decideAbandoned(run))
      .thenEvents();
  });
});

describe("an inbox page", () => {
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
  /** Starts a test of the decision about received messages, which are given newest first, as networks list them. */
  const reading = (...messages: InboxMessage[]) =>
    given(AUTHORIZED).when((state) => decideReceived(state, rules, messages));
  const received = { type: "DirectMessageReceived", data: { recipient: ANN } };
  const optedOut = { type: "RecipientSuppressed", data: { recipient: ANN, reason: "opt_out" } };

  test("records once that a stranger wrote", () => {
    reading(message("hello again"), message("hello")).thenEvents(received);
  });

  test("suppresses a sender who says stop, once and after the received message", () => {
    reading(message("stop"), message("stop")).thenEvents(received, optedOut);
  });

  test("reads a group message as an opt-out, but not as consent", () => {
    reading(message("hello", { inGroup: true })).thenEvents();
    reading(message("stop", { inGroup: true })).thenEvents(optedOut);
  });

  test("ignores the account's own messages", () => {
    reading(message("stop", { senderId: "1", senderUsername: "us" })).thenEvents();
  });

  test("records nothing that is already known", () => {
    const wrote: NewEvent = {
      type: "DirectMessageReceived",
      data: { recipient: ANN, message_id: "1", received_at: "2026-03-01T07:00:00.000Z" },
    };
    given(AUTHORIZED, wrote, SUPPRESSED)
      .when((state) => decideReceived(state, rules, [message("stop")]))
      .thenEvents();
  });

  test("records the first reply to a sent message", () => {
    given(AUTHORIZED, STARTED, ATTEMPTED, SENT)
      .when((state) => decideReceived(state, rules, [message("more"), message("thanks")]))
      .thenEvents(received);
  });
});
