import { describe, expect, test } from "bun:test";
import type { Contact } from "../../projections/contacts.ts";
import { quota } from "../../projections/quota.ts";
import type { SocialUser } from "../../src/networks/network.ts";
import {
  decideStart,
  isSkipRecorded,
  judgeKnown,
  judgeUser,
  remaining,
  type OutreachRules,
  type OutreachState,
} from "../../src/outreach/decide.ts";
import { createSuppressionHashes } from "../../src/outreach/suppression-hashes.ts";
import { parseTemplate } from "../../src/template/template.ts";
import { momentIn } from "../../src/outreach/quota.ts";
import { OWN, person } from "../harness/memory/social-network.ts";

const DAY = "2026-03-01";
const at = (day: string) => momentIn("UTC", Date.parse(day));
const hashes = createSuppressionHashes(new Uint8Array(32).fill(7));
const RULES: OutreachRules = {
  template: parseTemplate("Hi {{name}}"),
  requireConsent: true,
  dailyLimit: 100,
  hashes,
  isForgotten: () => false,
};

interface Given {
  readonly contact?: Partial<Contact> & { key?: string };
  readonly authorized?: boolean;
  readonly running?: boolean;
  readonly used?: number;
}

/** A state in which user 7 opted in, unless told otherwise. */
function given({ contact = {}, authorized = true, running = false, used = 0 }: Given = {}): OutreachState {
  const known: Contact = {
    id: "7",
    username: "user_7",
    basis: "opt_in",
    fields: {},
    listed: true,
    status: "open",
    suppressed: false,
    inbound: false,
    received: false,
    replied: false,
    again: false,
    skipped: [],
    ...contact,
  };
  const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };
  const current = { run_id: "r", dry_run: false, started_at: DAY, ...counts, waiting: null };
  return {
    run: { current: running ? current : null, open: new Map() },
    quota: { ...quota.initial(), days: new Map([[DAY, used]]) },
    contacts: {
      people: new Map([["7", known]]),
      ids: new Map([["7", "7"]]),
      handles: new Map([["user_7", "7"]]),
      former: new Map(),
      fields: new Map(),
      hashes: new Map(),
      taken: 0,
      refused: [],
    },
    account: { user: authorized ? OWN : null, scopes: [], authorized },
  };
}

describe("whether a run starts", () => {
  test.each([
    ["nothing speaks against it", given(), false, "start"],
    ["nobody authorized an account", given({ authorized: false }), false, "not_authorized"],
    ["nobody authorized an account, not even for a dry run", given({ authorized: false }), true, "not_authorized"],
    ["a run is in progress", given({ running: true }), false, "running"],
    ["a run is in progress, which also excludes a dry run", given({ running: true }), true, "running"],
    ["one place is left", given({ used: 99 }), false, "start"],
    ["the day's places are used up", given({ used: 100 }), false, "limit_reached"],
    ["the day's places are used up, but a dry run takes none", given({ used: 100 }), true, "start"],
    ["a run that is in progress counts before the limit", given({ running: true, used: 100 }), false, "running"],
  ] as const)("%s", (_what, state, dryRun, wanted) => {
    expect(decideStart(state, RULES, at(DAY), dryRun)).toBe(wanted);
  });

  test("the places of one day do not count on another, and are never fewer than none", () => {
    expect(remaining(given({ used: 30 }), RULES, at(DAY))).toBe(70);
    expect(remaining(given({ used: 30 }), RULES, at("2026-03-02"))).toBe(100);
    expect(remaining(given({ used: 130 }), RULES, at(DAY))).toBe(0);
  });
});

describe("whether a person gets a message", () => {
  const rules = (template: string, more: Partial<OutreachRules> = {}) => ({
    ...RULES,
    template: parseTemplate(template),
    ...more,
  });
  const judge = (user: Partial<SocialUser>, state = given(), wanted: OutreachRules = RULES) =>
    judgeUser(state, wanted, person("7", user));
  const skip = (reason: string) => ({ verdict: "skip", reason });

  test.each([
    ["open, and consented", judge({}), { verdict: "write", text: "Hi Name 7", variant: "A" }],
    ["does not say whether DMs are open", judge({ receivesOurDm: undefined }), { verdict: "write" }],
    ["ourselves", judge({ id: "1", username: "renamed" }), skip("self")],
    ["suppressed", judge({}, given({ contact: { suppressed: true } })), skip("suppressed")],
    ["sent already", judge({}, given({ contact: { status: "sent" } })), skip("already_contacted")],
    ["attempted just now", judge({}, given({ contact: { status: "attempted" } })), skip("already_contacted")],
    ["in doubt", judge({}, given({ contact: { status: "in_doubt" } })), skip("already_contacted")],
    ["failed for good, which the log tells", judge({}, given({ contact: { status: "failed" } })), { verdict: "pass" }],
    ["no consent", judge({}, given({ contact: { basis: "none" } })), skip("no_consent")],
    ["nobody we know", judge({ id: "8", username: "user_8" }), skip("no_consent")],
    ["protected", judge({ protected: true, receivesOurDm: undefined }), skip("protected")],
    ["protected and closed", judge({ protected: true, receivesOurDm: false }), skip("protected")],
    ["protected, but open to us", judge({ protected: true }), { verdict: "write" }],
    ["closed", judge({ receivesOurDm: false }), skip("cannot_receive_dm")],
    [
      "lacks a field",
      judge({}, given(), rules("{{company}} {{city}}")),
      { ...skip("missing_field"), detail: "city, company" },
    ],
    ["has no visible name", judge({ name: " " }), { ...skip("missing_field"), detail: "name" }],
    [
      "would get too long a message",
      judge({}, given({ contact: { fields: { x: "y".repeat(10_001) } } }), rules("{{x}}")),
      { ...skip("missing_field"), detail: "the message would be 10001 characters long" },
    ],
  ])("%s", (_what, verdict, wanted) => {
    expect(verdict).toMatchObject(wanted);
  });

  test("an imported name beats the network's, and fields are those of the import", () => {
    const state = given({ contact: { name: "Ann", fields: { company: "Acme" } } });
    expect(judge({}, state, rules("{{name}} of {{company}}"))).toMatchObject({ text: "Ann of Acme" });
  });

  test("without REQUIRE_CONSENT somebody unknown is written to", () => {
    const verdict = judge({ id: "8" }, given(), rules("Hi", { requireConsent: false }));
    expect(verdict).toMatchObject({ verdict: "write" });
  });

  test("what stands in the log is refused before anything is asked of the network", () => {
    expect(judgeKnown(given({ contact: { suppressed: true } }), RULES, { username: "USER_7" })).toEqual({
      verdict: "skip",
      reason: "suppressed",
    });
    expect(judgeKnown(given(), RULES, { username: "We" })).toEqual({ verdict: "skip", reason: "self" });
    expect(judgeKnown(given(), rules("{{company}}"), { id: "7" })).toMatchObject({ reason: "missing_field" });
    const long = given({ contact: { fields: { x: "y".repeat(10_001) } } });
    expect(judgeKnown(long, rules("{{x}}"), { id: "7" })).toMatchObject({ reason: "missing_field" });
    expect(judgeKnown(given(), RULES, { id: "7" })).toEqual({ verdict: "ask" });
  });

  test("a skip is told once for each reason", () => {
    const state = given({ contact: { skipped: ["protected"] } });
    expect(isSkipRecorded(state, { id: "7" }, "protected")).toBe(true);
    expect(isSkipRecorded(state, { id: "7" }, "suppressed")).toBe(false);
    expect(isSkipRecorded(state, { id: "8" }, "protected")).toBe(false);
  });
});
