// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { Audience } from "../../../events/campaign.ts";
import type { DataOf } from "../../../events/event-types-and-codec.ts";
import { FETCH_MS } from "../../../projections/clicks-suspected-as-networks-own.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { judgeKnown, decideStart, isSkipRecorded, type OutreachState } from "../../../src/outreach/decide.ts";
import { rulesForCampaign } from "../../../src/outreach/run-rules.ts";
import { given } from "../../harness/in-process/given-when-then-for-deciders.ts";
import { addedOf, clickOf } from "../../harness/in-process/make-recipient-and-click-events.ts";
import { RULES } from "../../harness/in-process/simulated-outreach-processes.ts";

const FREED = { reason: "rejected", detail: "", frees_quota: true } as const;
const ANN = { id: "7", username: "ann" };
const DAY_MS = 24 * 3_600_000;

/** Time of the events in `given`, give or take some seconds. */
const START = Date.parse("2026-03-01T07:00:00.000Z");
const EVIDENCE = { consent_at: "2025-01-01", consent_source: "form" };
const listed = addedOf(ANN, EVIDENCE);

const created = (name: string, audience: Audience = {}, more: Partial<DataOf<"CampaignCreated">> = {}): NewEvent => ({
  type: "CampaignCreated",
  data: { name, text: "Hello {{name}}", audience, ...more },
});

function sent(campaign: string | undefined, follows?: string): NewEvent[] {
  const named = campaign === undefined ? {} : { campaign };
  const attempt = { attempt_id: `a ${campaign}`, run_id: "r", recipient: ANN, ...named };
  const text = { text: "Hi", variant: "A", day: "2026-03-01", ...(follows !== undefined && { follows }) };
  return [
    { type: "DirectMessageAttempted", data: { ...attempt, ...text } },
    { type: "DirectMessageSent", data: { ...attempt, message_id: `m ${campaign}`, settled_by: "answer" } },
  ];
}

const replied = (received_at: string): NewEvent => ({
  type: "DirectMessageReceived",
  data: { recipient: ANN, message_id: "1", received_at },
});

/** Judges if Ann may get a message of the campaign `days` days after the events. */
const judge =
  (campaign: string | undefined, days = 0, rules = RULES) =>
  (state: OutreachState) => {
    const later = { ...state, ms: state.ms + days * DAY_MS };
    return judgeKnown(later, rulesForCampaign(rules, state.campaigns, campaign), ANN);
  };

const ASK = { verdict: "ask" };
const leftOut = (detail: string) => ({ verdict: "pass", reason: "not_in_audience", detail });

describe("once per recipient and campaign", () => {
  test("another campaign's message rules out none of this one", () => {
    const log = given(listed, created("spring"), ...sent(undefined));
    log.when(judge(undefined, 40)).thenAnswers({ verdict: "skip", reason: "already_contacted" });
    log.when(judge("spring", 40)).thenAnswers(ASK);
    const both = given(listed, created("spring"), ...sent(undefined), ...sent("spring"));
    both.when(judge("spring", 40)).thenAnswers({ verdict: "skip", reason: "already_contacted" });
    both.when(judge(undefined, 40)).thenAnswers({ verdict: "skip", reason: "already_contacted" });
  });

  test("an outcome counts for its own campaign, also after the next one's message", () => {
    const attempt = { attempt_id: "a undefined", run_id: "r", recipient: ANN };
    const failed = { ...attempt, reason: "not_delivered", detail: "", frees_quota: false, retry: false } as const;
    const [intent] = sent(undefined);
    const log = given(listed, intent!, ...sent("spring"), { type: "DirectMessageFailed", data: failed });
    log.when(judge(undefined)).thenAnswers({ verdict: "pass", reason: "failed_before" });
  });

  test("a skip is recorded once for each campaign", () => {
    const skipped = { run_id: "r", recipient: ANN, reason: "suppressed" } as const;
    const isRecorded = (campaign?: string) => (state: OutreachState) =>
      isSkipRecorded(state, rulesForCampaign(RULES, state.campaigns, campaign), ANN, "suppressed");
    const log = given(listed, created("spring"), { type: "DirectMessageSkipped", data: skipped });
    log.when(isRecorded()).thenAnswers(true);
    log.when(isRecorded("spring")).thenAnswers(false);
  });
});

test("no recipient belongs to a campaign that has ended", () => {
  const ended = given(listed, created("spring"), { type: "CampaignEnded", data: { name: "spring" } });
  ended.when(judge("spring")).thenAnswers(leftOut("campaign_ended"));
});

test("a campaign may have the name of a member that every object has", () => {
  const followed = created("next", { messaged: "constructor" });
  const log = given(listed, created("constructor"), followed, ...sent(undefined), replied("2026-03-01T08:00:00.000Z"));
  log.when(judge("constructor", 40)).thenAnswers(ASK);
  const both = given(
    listed,
    created("constructor"),
    followed,
    ...sent(undefined),
    replied("2026-03-01T08:00:00.000Z"),
    ...sent("constructor"),
  );
  both.when(judge("next", 40)).thenAnswers(ASK);
});

describe("the gap", () => {
  const from = (second: number, days: number) => ({
    verdict: "skip",
    reason: "too_soon",
    detail: `possible from ${new Date(START + second * 1000 + days * DAY_MS).toISOString()}`,
  });

  test("separates messages of different campaigns, from the attempt on", () => {
    const log = given(listed, created("spring"), ...sent(undefined));
    log.when(judge("spring", 29)).thenAnswers(from(3, 30));
    log.when(judge("spring", 30)).thenAnswers(ASK);
    given(listed, created("spring"), ...sent("spring"))
      .when(judge(undefined, 1))
      .thenAnswers(from(3, 30));
  });

  test("is as long as the campaign asks, and never shorter than the setting", () => {
    const long = given(listed, created("spring", {}, { gap_days: 60 }), ...sent(undefined));
    long.when(judge("spring", 31)).thenAnswers(from(3, 60));
    const short = given(listed, created("spring", {}, { gap_days: 1 }), ...sent(undefined));
    short.when(judge("spring", 2)).thenAnswers(from(3, 30));
  });

  test("does not count between attempts of one campaign, nor a message that was certainly not sent", () => {
    const attempt = { attempt_id: "a undefined", run_id: "r", recipient: ANN };
    const failed = (reason: "not_delivered" | "withdrawn", frees_quota: boolean): NewEvent => ({
      type: "DirectMessageFailed",
      data: { ...attempt, reason, detail: "", frees_quota, retry: frees_quota },
    });
    const allowed: NewEvent = { type: "RecipientRetryAllowed", data: { recipient: ANN } };
    const [intent] = sent(undefined);
    given(listed, intent!, failed("not_delivered", false), allowed).when(judge(undefined)).thenAnswers(ASK);
    given(listed, created("spring"), intent!, failed("withdrawn", true)).when(judge("spring")).thenAnswers(ASK);
  });
});

describe("consent", () => {
  test("of a campaign other than default needs its date and source, whatever the setting says", () => {
    const rules = { ...RULES, requireConsent: false };
    const log = given(addedOf(ANN), created("spring"));
    log.when(judge(undefined, 0, rules)).thenAnswers(ASK);
    const detail = "consent_at and consent_source are missing";
    log.when(judge("spring", 0, rules)).thenAnswers({ verdict: "skip", reason: "no_consent", detail });
  });

  test("for one campaign or topic holds for no other", () => {
    const campaigns = [created("spring"), created("autumn"), created("tea", {}, { topic: "spring" })];
    const log = given(addedOf(ANN, { ...EVIDENCE, consent_for: "spring" }), ...campaigns);
    log.when(judge("spring")).thenAnswers(ASK);
    log.when(judge("tea")).thenAnswers(ASK);
    log.when(judge("autumn")).thenAnswers(expect.objectContaining({ reason: "no_consent" }));
    log.when(judge(undefined)).thenAnswers({ verdict: "skip", reason: "no_consent" });
  });

  test("that is withdrawn without naming a campaign ends all", () => {
    const withdrawn: NewEvent = { type: "ConsentRecorded", data: { recipient: ANN, basis: "none" } };
    const log = given(addedOf(ANN, { ...EVIDENCE, consent_for: "spring" }), created("spring"), withdrawn);
    log.when(judge("spring")).thenAnswers(expect.objectContaining({ reason: "no_consent" }));
  });

  const recorded = (data: Omit<DataOf<"ConsentRecorded">, "recipient">): NewEvent => ({
    type: "ConsentRecorded",
    data: { recipient: ANN, ...data },
  });
  const withdrawn = (consent_for: string) => recorded({ basis: "none", consent_for });
  const refused = expect.objectContaining({ reason: "no_consent", detail: expect.stringContaining("basis") });
  const campaigns = [created("spring"), created("autumn"), created("tea", {}, { topic: "drinks" })];

  test("that is withdrawn for one campaign holds for all others", () => {
    const log = given(listed, ...campaigns, withdrawn("spring"));
    log.when(judge("spring")).thenAnswers(refused);
    log.when(judge("autumn")).thenAnswers(ASK);
    log.when(judge(undefined)).thenAnswers(ASK);
    const fromDefault = given(listed, ...campaigns, withdrawn("default"));
    fromDefault.when(judge(undefined)).thenAnswers({ verdict: "skip", reason: "no_consent" });
    fromDefault.when(judge("spring")).thenAnswers(ASK);
  });

  test.each([
    ["a general consent", listed],
    ["a consent that names the campaign", recorded({ basis: "opt_in", ...EVIDENCE, consent_for: "tea" })],
    ["a message that the recipient wrote first", replied("2026-03-01T06:00:00.000Z")],
  ])("that is withdrawn for a topic ends for its campaigns, whatever else allows them: %s", (_what, before) => {
    given(before, ...campaigns)
      .when(judge("tea"))
      .thenAnswers(ASK);
    given(before, ...campaigns, withdrawn("drinks"))
      .when(judge("tea"))
      .thenAnswers(refused);
  });

  test("that is withdrawn for one campaign returns only with a consent that names it", () => {
    const before = [listed, ...campaigns, withdrawn("spring")];
    given(...before, recorded({ basis: "opt_in", ...EVIDENCE }))
      .when(judge("spring"))
      .thenAnswers(refused);
    given(...before, recorded({ basis: "none" }), recorded({ basis: "opt_in", ...EVIDENCE }))
      .when(judge("spring"))
      .thenAnswers(refused);
    given(...before, recorded({ basis: "opt_in", ...EVIDENCE, consent_for: "spring" }))
      .when(judge("spring"))
      .thenAnswers(ASK);
  });

  test("for a topic holds for all spellings that differ by case or accents", () => {
    const tea = created("tea", {}, { topic: "Früh-News" });
    const given_for = (consent_for: string) => recorded({ basis: "opt_in", ...EVIDENCE, consent_for });
    const consented = given(addedOf(ANN), tea, given_for("FRÜH-NEWS".normalize("NFD")));
    consented.when(judge("tea")).thenAnswers(ASK);
    const before = [listed, tea, withdrawn("früh-news")];
    given(...before)
      .when(judge("tea"))
      .thenAnswers(refused);
    given(...before, given_for("Früh-news"))
      .when(judge("tea"))
      .thenAnswers(ASK);
    given(addedOf(ANN), tea, given_for("Früh-News"), withdrawn("FRÜH-NEWS")).when(judge("tea")).thenAnswers(refused);
    given(listed, created("spring"), withdrawn("Spring")).when(judge("spring")).thenAnswers(refused);
  });

  test("that is withdrawn under one of two names stays withdrawn once they are known to be one recipient", () => {
    const byHandle = { recipient: { username: "ann" } };
    const byId = { recipient: { id: "7" } };
    const consent = { basis: "opt_in", ...EVIDENCE, consent_for: "spring" } as const;
    for (const [one, other] of [
      [byHandle, byId],
      [byId, byHandle],
    ] as const) {
      const events: NewEvent[] = [
        { type: "ConsentRecorded", data: { ...one, basis: "none", consent_for: "Spring" } },
        { type: "ConsentRecorded", data: { ...other, ...consent } },
      ];
      given(...events, ...campaigns, addedOf(ANN))
        .when(judge("spring"))
        .thenAnswers(refused);
    }
  });
});

describe("an audience of recipients who clicked", () => {
  const granted = addedOf(ANN, { ...EVIDENCE, tracking: "granted" });
  const tracked = (campaign: string | undefined, ...links: string[]): NewEvent[] => {
    const [intent, taken] = sent(campaign);
    const personal_links = links.map((link) => ({ code: `own-${link}`, link: `go.example/${link}` }));
    return [{ ...intent, data: { ...intent!.data, personal_links } } as NewEvent, taken!];
  };
  const failed: NewEvent = {
    type: "DirectMessageFailed",
    data: { attempt_id: "a spring", run_id: "r", recipient: ANN, campaign: "spring", ...FREED, retry: false },
  };
  const clicked = (link: string): NewEvent => ({ type: "PersonalLinkClicked", data: { code: `own-${link}` } });
  /**
   * One event a second, until FETCH_MS has passed. Within that time after a message, a request for its link may come
   * from the network itself.
   */
  const pause = Array.from({ length: FETCH_MS / 1_000 }, () => clickOf());
  const asked = created("asked", { clicked: "go.example/a" });

  test("counts a click on a link of any message to them, also after the newest one", () => {
    const [first, second] = [tracked(undefined, "a"), tracked("spring", "b")];
    const out = leftOut("not_clicked");
    const answers: readonly (readonly [readonly NewEvent[], unknown])[] = [
      [[...first, ...pause, clicked("a")], ASK],
      [[...first, ...pause, ...second, clicked("a")], ASK],
      [[...first, ...pause, second[0]!, failed, clicked("a")], ASK],
      [[...first, ...pause, ...second, ...pause, clicked("b")], out],
    ];
    for (const [events, answer] of answers)
      given(granted, asked, ...events)
        .when(judge("asked", 40))
        .thenAnswers(answer);
  });

  test("counts no request that may be the network's, nor of a message that did not arrive", () => {
    const first = tracked(undefined, "a");
    const [intent, taken] = first;
    const lost = [...tracked("spring", "a").slice(0, 1), failed];
    for (const events of [
      [...first, clicked("a")],
      [intent!, ...pause, clicked("a"), taken!],
      [intent!, ...pause, taken!, clicked("a")],
      [...lost, ...pause, clicked("a")],
    ])
      given(granted, asked, ...events)
        .when(judge("asked", 40))
        .thenAnswers(leftOut("not_clicked"));
  });
});

describe("a follow-up", () => {
  const follow = created("follow", { messaged: "default", days: 1 });
  const second = created("second", { messaged: "follow", days: 1 });
  const third = created("third", { messaged: "default", days: 1 });

  test("goes to recipients of the message that it follows", () => {
    given(listed, follow).when(judge("follow", 40)).thenAnswers(leftOut("not_messaged"));
    given(listed, follow, ...sent(undefined))
      .when(judge("follow", 40))
      .thenAnswers(ASK);
  });

  test("ends with any reply in its chain, even one that was read late", () => {
    const log = given(listed, follow, second, ...sent(undefined), ...sent("follow", "default"));
    log.when(judge("second", 40)).thenAnswers(ASK);
    // The reply came after the first message and before the second one, but the log did not have it when the second
    // message was decided.
    const early = new Date(START + 5_500).toISOString();
    given(listed, follow, second, ...sent(undefined), ...sent("follow", "default"), replied(early))
      .when(judge("second", 40))
      .thenAnswers(leftOut("replied"));
  });

  test("ends with a hold, also once an operator has released the recipient", () => {
    const data = { recipient: ANN, message_id: "x", received_at: new Date(START + 60_000).toISOString() };
    const held: NewEvent = { type: "RecipientHeld", data: { ...data, reason: "x_chat" } };
    const released: NewEvent = { type: "RecipientReleased", data: { recipient: ANN } };
    given(listed, follow, ...sent(undefined), held, released)
      .when(judge("follow", 40))
      .thenAnswers(leftOut("replied"));
  });

  test("comes at most twice after a first message", () => {
    const messages = [...sent(undefined), ...sent("follow", "default"), ...sent("second", "default")];
    given(listed, follow, second, third, ...messages)
      .when(judge("third", 80))
      .thenAnswers(leftOut("2_follow_ups"));
  });

  test("follows no message that only the network showed after a restore", () => {
    const found = { message_id: "1", sent_at: "2026-03-01T06:00:00.000Z" };
    const data = { run_id: "r", recipient: ANN, reason: "already_contacted", found } as const;
    given(listed, follow, { type: "DirectMessageSkipped", data })
      .when(judge("follow", 40))
      .thenAnswers(leftOut("restored_without_message"));
  });
});

test("no run of an unknown campaign starts, nor of one that ended", () => {
  const data = { user: { ...ANN, name: "Us" }, scopes: [], expires_at: "2026-03-01T10:00:00.000Z" };
  const moment = { ms: START, clockMs: START, day: "2026-03-01", timezone: "UTC" };
  const start = (campaign: string) => (state: OutreachState) =>
    decideStart(state, rulesForCampaign(RULES, state.campaigns, campaign), moment, true);
  const ended: NewEvent = { type: "CampaignEnded", data: { name: "old" } };
  const log = given({ type: "AccountAuthorized", data }, created("spring"), created("old"), ended);
  log.when(start("spring")).thenAnswers("start");
  log.when(start("old")).thenAnswers("campaign_ended");
  log.when(start("none")).thenAnswers("unknown_campaign");
});
