// These tests run parts of the service inside the test process.
import { describe, test } from "bun:test";
import type { DataOf } from "../../events/event-types-and-codec.ts";
import type { Recipient, SkipReason } from "../../events/outreach.ts";
import { parseOpenHours } from "../../src/config/send-window.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import type { SocialUser } from "../../src/networks/network.ts";
import { decideStop } from "../../src/outreach/run-end-and-stop-request.ts";
import { remaining } from "../../src/outreach/quota-and-reasons-to-end-run.ts";
import {
  decideStart,
  isSkipRecorded,
  judgeKnown,
  judgeUser,
  type OutreachRules,
  type OutreachState,
  type Verdict,
} from "../../src/outreach/decide.ts";
import { parseTemplate } from "../../src/template/template.ts";
import { momentIn } from "../../src/outreach/quota-day.ts";
import { given } from "../harness/in-process/given-when-then-for-deciders.ts";
import { RULES } from "../harness/in-process/simulated-outreach-processes.ts";
import { OWN, person } from "../harness/in-process/social-network.ts";

const DAY = "2026-03-01";
const at = (day: string) => ({ ...momentIn("UTC", Date.parse(day)), clockMs: Date.parse(day) });

const SEVEN = { id: "7", username: "user_7" };
const ATTEMPT = { attempt_id: "a", run_id: "r", recipient: SEVEN };

const AUTHORIZED: NewEvent = {
  type: "AccountAuthorized",
  data: { user: OWN, scopes: [], expires_at: "2026-03-01T10:00:00.000Z" },
};
const RUNNING: NewEvent = { type: "RunStarted", data: { run_id: "r", dry_run: false } };
const SUPPRESSED: NewEvent = { type: "RecipientSuppressed", data: { recipient: SEVEN, reason: "opt_out" } };
const ATTEMPTED: NewEvent = {
  type: "DirectMessageAttempted",
  data: { ...ATTEMPT, text: "Hi", variant: "A", day: DAY },
};
const SENT: NewEvent = { type: "DirectMessageSent", data: { ...ATTEMPT, message_id: "m", settled_by: "answer" } };
const IN_DOUBT: NewEvent = { type: "DirectMessageInDoubt", data: { ...ATTEMPT, detail: "time-out" } };
const FAILED: NewEvent = {
  type: "DirectMessageFailed",
  data: { ...ATTEMPT, reason: "rejected", detail: "", frees_quota: false, retry: false },
};

/** Event that imports user 7. */
const listed = (more: Partial<DataOf<"RecipientAdded">> = {}): NewEvent => ({
  type: "RecipientAdded",
  data: { recipient: SEVEN, basis: "opt_in", fields: {}, source: "list", ...more },
});

/** Events of messages to `count` recipients other than user 7, all on the day that the tests decide on. */
const messages = (count: number): NewEvent[] =>
  Array.from({ length: count }, (_, nth): NewEvent => ({
    type: "DirectMessageAttempted",
    data: {
      attempt_id: `a${nth}`,
      run_id: "r0",
      recipient: { id: `1${nth}`, username: `user_1${nth}` },
      text: "Hi",
      variant: "A",
      day: DAY,
    },
  }));

/** Starts a test with an authorized account and with user 7, who has opted in. */
const openTo7 = (...newEvents: NewEvent[]) => given(AUTHORIZED, listed(), ...newEvents);

describe("the start of a run", () => {
  test.each([
    ["proceeds if nothing prevents it", openTo7(), false, "start"],
    ["is refused without an account", given(listed()), false, "not_authorized"],
    ["is refused without an account, also for a dry run", given(listed()), true, "not_authorized"],
    ["is refused during a run", openTo7(RUNNING), false, "running"],
    ["is refused during a run, also for a dry run", openTo7(RUNNING), true, "running"],
    ["proceeds with one message left in the quota", openTo7(...messages(99)), false, "start"],
    ["is refused if the quota is used up", openTo7(...messages(100)), false, "daily_limit_reached"],
    ["proceeds for a dry run if the quota is used up", openTo7(...messages(100)), true, "start"],
    ["names the run in progress rather than the used-up quota", openTo7(RUNNING, ...messages(100)), false, "running"],
  ] as const)("%s", (_what, log, dryRun, wanted) => {
    log.when((state) => decideStart(state, RULES, at(DAY), dryRun)).thenAnswers(wanted);
  });

  test.each([
    ["is refused outside the window if runs end there", "Mon 09:00-17:00", "quota", "end", false, "window_closed"],
    ["proceeds for a dry run outside the window", "Mon 09:00-17:00", "quota", "end", true, "start"],
    ["proceeds outside the window if runs pause there", "Mon 09:00-17:00", "quota", "pause", false, "start"],
    ["proceeds if the window may be open for some recipients", "Mon 09:00-17:00", "recipient", "end", false, "start"],
    // DAY is a Sunday at 00:00, so this window is open.
    ["proceeds within the window", "Sun 00:00-17:00", "quota", "end", false, "start"],
  ] as const)("%s", (_what, text, zone, whenClosed, dryRun, wanted) => {
    const window = { text, hours: parseOpenHours(text) ?? [], zone, whenClosed };
    openTo7()
      .when((state) => decideStart(state, { ...RULES, window }, at(DAY), dryRun))
      .thenAnswers(wanted);
  });

  test("has a remaining quota for each day, never below zero", () => {
    const left = (day: string) => (state: OutreachState) => remaining(state, RULES, at(day));
    given(...messages(30))
      .when(left(DAY))
      .thenAnswers(70);
    given(...messages(30))
      .when(left("2026-03-02"))
      .thenAnswers(100);
    given(...messages(130))
      .when(left(DAY))
      .thenAnswers(0);
  });
});

describe("a stop request", () => {
  const stop = (runId?: string) => (state: OutreachState) => decideStop(state, runId);
  const asked: NewEvent = { type: "RunStopRequested", data: { run_id: "r" } };
  const ended: NewEvent = {
    type: "RunFinished",
    data: { run_id: "r", reason: "stopped", sent: 0, skipped: 0, failed: 0, in_doubt: 0 },
  };
  const next: NewEvent = { type: "RunStarted", data: { run_id: "r2", dry_run: true } };

  test.each([undefined, "r"])("is recorded for the run in progress, named as %s", (runId) => {
    given(RUNNING).when(stop(runId)).thenEvents(asked);
  });

  test("is recorded for a dry run after a stopped run", () => {
    given(RUNNING, asked, ended, next)
      .when(stop())
      .thenEvents({ type: "RunStopRequested", data: { run_id: "r2" } });
  });

  test.each([undefined, "r"])("is recorded once, named as %s", (runId) => {
    given(RUNNING, asked).when(stop(runId)).thenEvents();
  });

  test("is refused if no run or another one is in progress", () => {
    given().when(stop()).thenAnswers({ refusal: "not_in_progress" });
    given(RUNNING, ended).when(stop("r")).thenAnswers({ refusal: "not_in_progress" });
    given(RUNNING, ended, next).when(stop("r")).thenAnswers({ refusal: "not_in_progress" });
  });
});

type Write = Extract<Verdict, { verdict: "write" }>;

describe("a recipient", () => {
  const rules = (template: string, more: Partial<OutreachRules> = {}) => ({
    ...RULES,
    template: parseTemplate(template),
    ...more,
  });
  const judge =
    (user: Partial<SocialUser>, wanted: OutreachRules = RULES) =>
    (state: OutreachState) => {
      const {
        links: _links,
        contact: _contact,
        ...verdict
      } = { ...judgeUser(state, wanted, person("7", user)) } as Write;
      return verdict;
    };
  const skip = (reason: string, detail?: string) => ({ verdict: "skip", reason, ...(detail && { detail }) });
  const passed = { verdict: "pass", reason: "failed_before" };
  const write = (text: string) => ({ verdict: "write", text, variant: "A" });
  const long = { fields: { x: "y".repeat(10_001) } };

  test.each([
    ["gets a message with open DMs and consent", openTo7(), judge({}), write("Hi Name 7")],
    [
      "gets a message if the network does not say whether DMs are open",
      openTo7(),
      judge({ receivesOurDm: undefined }),
      write("Hi Name 7"),
    ],
    ["is skipped if it is the account itself", openTo7(), judge({ id: "1", username: "renamed" }), skip("self")],
    ["is skipped if suppressed", openTo7(SUPPRESSED), judge({}), skip("suppressed")],
    ["is skipped after a sent message", openTo7(ATTEMPTED, SENT), judge({}), skip("already_contacted")],
    ["is skipped after an attempt without an outcome", openTo7(ATTEMPTED), judge({}), skip("already_contacted")],
    ["is skipped after a message in doubt", openTo7(ATTEMPTED, IN_DOUBT), judge({}), skip("already_contacted")],
    ["is passed over after a final failure", openTo7(ATTEMPTED, FAILED), judge({}), passed],
    ["is skipped without consent", given(AUTHORIZED, listed({ basis: "none" })), judge({}), skip("no_consent")],
    ["is skipped if unknown", openTo7(), judge({ id: "8", username: "user_8" }), skip("no_consent")],
    ["is skipped if protected", openTo7(), judge({ protected: true, receivesOurDm: undefined }), skip("protected")],
    [
      "is skipped if protected and closed",
      openTo7(),
      judge({ protected: true, receivesOurDm: false }),
      skip("protected"),
    ],
    ["gets a message if protected, but open to us", openTo7(), judge({ protected: true }), write("Hi Name 7")],
    ["is skipped with closed DMs", openTo7(), judge({ receivesOurDm: false }), skip("cannot_receive_dm")],
    [
      "is skipped without a field of the template",
      openTo7(),
      judge({}, rules("{{company}} {{city}}")),
      skip("missing_field", "city, company"),
    ],
    ["is skipped without a visible name", openTo7(), judge({ name: " " }), skip("missing_field", "name")],
    [
      "is skipped if the message would be too long",
      given(AUTHORIZED, listed(long)),
      judge({}, rules("{{x}}")),
      skip("missing_field", "the message would be 10001 characters long"),
    ],
  ])("%s", (_what, log, judged, wanted) => {
    log.when(judged).thenAnswers(wanted);
  });

  test("gets a message with the name and fields of the import", () => {
    given(AUTHORIZED, listed({ name: "Ann", fields: { company: "Acme" } }))
      .when(judge({}, rules("{{name}} of {{company}}")))
      .thenAnswers(write("Ann of Acme"));
  });

  test("gets a message if unknown, without REQUIRE_CONSENT", () => {
    openTo7()
      .when(judge({ id: "8" }, rules("Hi", { requireConsent: false })))
      .thenAnswers(write("Hi"));
  });

  describe("with REQUIRE_CONSENT=evidence", () => {
    const wanted = rules("Hi", { requireConsent: "evidence" });
    const at = { consent_at: "2026-02-01" };
    const source = { consent_source: "https://shop.example/form" };
    const consented = (data: Omit<DataOf<"ConsentRecorded">, "recipient">): NewEvent => ({
      type: "ConsentRecorded",
      data: { recipient: SEVEN, ...data },
    });
    const received: NewEvent<"DirectMessageReceived"> = {
      type: "DirectMessageReceived",
      data: { recipient: SEVEN, message_id: "m", received_at: "2026-02-01T07:00:00.000Z" },
    };
    const answered: readonly NewEvent[] = [
      ATTEMPTED,
      {
        type: "DirectMessageFailed",
        data: { ...ATTEMPT, reason: "rate_limited", detail: "", frees_quota: false, retry: true },
      },
      { type: "DirectMessageReceived", data: { ...received.data, received_at: "2026-03-02T07:00:00.000Z" } },
    ];
    const BOTH = "consent_at and consent_source are missing";
    const NONE = "basis, consent_at and consent_source are missing";
    const [NO_DATE, NO_SOURCE] = ["consent_at is missing", "consent_source is missing"];

    test.each([
      ["nothing is known of them", [], NONE],
      ["the list has no basis", [listed({ basis: "none" })], NONE],
      ["the consent was withdrawn, with evidence", [listed({ basis: "none", ...at, ...source })], NONE],
      ["the list has only a basis", [listed()], BOTH],
      ["the list says dm_first, but no message is known", [listed({ basis: "dm_first" })], BOTH],
      ["the date is missing", [listed(source)], NO_DATE],
      ["the source is missing", [listed(at)], NO_SOURCE],
      ["only a wording is known", [listed({ consent_text: "Yes" })], BOTH],
      ["only a wording and a date are known", [listed({ consent_text: "Yes", ...at })], NO_SOURCE],
      ["only tracking has evidence", [listed({ tracking: "granted", tracking_at: "2026-02-01" })], BOTH],
      ["date and source are from two records", [listed(at), consented({ basis: "opt_in", ...source })], NO_DATE],
      ["the evidence belongs to another basis", [listed({ ...at, ...source }), consented({ basis: "dm_first" })], BOTH],
      ["a later import has no basis", [listed({ ...at, ...source }), listed({ basis: "none" })], NONE],
      ["they only answered a message", [listed(), ...answered], BOTH],
    ] as const)("is skipped if %s", (_what, before, detail) => {
      given(AUTHORIZED, ...before)
        .when(judge({}, wanted))
        .thenAnswers(skip("no_consent", detail));
      given(AUTHORIZED, ...before)
        .when((state) => judgeKnown(state, wanted, { id: "7" }))
        .thenAnswers(skip("no_consent", detail));
    });

    test.each([
      ["an import has date and source", [listed({ ...at, ...source })]],
      ["a record has date and source", [listed(), consented({ basis: "opt_in", ...at, ...source })]],
      ["a later import without the columns keeps them", [listed({ ...at, ...source }), listed()]],
      ["they wrote first", [received]],
      ["they wrote first, although the list has no basis", [received, listed({ basis: "none" })]],
    ] as const)("gets a message if %s", (_what, before) => {
      given(AUTHORIZED, ...before)
        .when(judge({}, wanted))
        .thenAnswers(write("Hi"));
    });
  });

  test("is judged by the log before the network is asked", () => {
    const known =
      (who: Recipient, wanted: OutreachRules = RULES) =>
      (state: OutreachState) =>
        judgeKnown(state, wanted, who);
    openTo7(SUPPRESSED)
      .when(known({ username: "USER_7" }))
      .thenAnswers(skip("suppressed"));
    openTo7()
      .when(known({ username: "We" }))
      .thenAnswers(skip("self"));
    openTo7()
      .when(known({ id: "7" }, rules("{{company}}")))
      .thenAnswers(skip("missing_field", "company"));
    given(AUTHORIZED, listed(long))
      .when(known({ id: "7" }, rules("{{x}}")))
      .thenAnswers(skip("missing_field", "the message would be 10001 characters long"));
    openTo7()
      .when(known({ id: "7" }))
      .thenAnswers({ verdict: "ask" });
  });

  test("is suppressed under every name by the hash of one of them", () => {
    const hashes = [...RULES.hashes({ username: SEVEN.username })];
    const byHash: NewEvent = { type: "RecipientSuppressed", data: { reason: "list", hashes } };
    const judgeAs = (who: Recipient) => (state: OutreachState) => judgeKnown(state, RULES, who);
    given(AUTHORIZED, listed(), byHash)
      .when(judgeAs({ id: "7" }))
      .thenAnswers(skip("suppressed"));
    const renamed = judgeAs({ id: "7", username: "seven" });
    given(AUTHORIZED, listed(), byHash).when(renamed).thenAnswers(skip("suppressed"));
  });

  test("has a recorded skip for each reason", () => {
    const skipped: NewEvent = {
      type: "DirectMessageSkipped",
      data: { run_id: "r", recipient: SEVEN, reason: "protected" },
    };
    const isRecorded = (who: Recipient, reason: SkipReason) => (state: OutreachState) =>
      isSkipRecorded(state, RULES, who, reason);
    openTo7(skipped)
      .when(isRecorded({ id: "7" }, "protected"))
      .thenAnswers(true);
    openTo7(skipped)
      .when(isRecorded({ id: "7" }, "suppressed"))
      .thenAnswers(false);
    openTo7(skipped)
      .when(isRecorded({ id: "8" }, "protected"))
      .thenAnswers(false);
  });
});
