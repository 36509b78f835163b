// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import type { Audience } from "../../../events/campaign.ts";
import { newContact, type Contact } from "../../../projections/contact-state.ts";
import { links } from "../../../projections/links.ts";
import { isFollowUp, matchesAudience } from "../../../src/outreach/campaigns/audience.ts";

const NOW = Date.parse("2026-03-20T12:00:00.000Z");
const known = links.initial();
known.personal.set("own", { code: "abc", recipient: { id: "1" } });

function judge(audience: Audience, contact: Partial<Contact> | undefined) {
  const whole = contact && { ...newContact(), ...contact };
  const found = matchesAudience(audience, whole, { links: known }, NOW);
  return found.matches ? "match" : (found.from ?? found.reason);
}

const SENT = { status: "sent", attempted_at: "2026-03-10T12:00:00.000Z" } as const;
const SPRING = { campaign: "spring", ...SENT };
const CLICKED: Partial<Contact> = { tracking: { status: "granted" }, clicked: ["own"] };

const CASES: readonly (readonly [Audience, Partial<Contact> | undefined, string])[] = [
  [{}, undefined, "match"],
  [{ source: "list" }, {}, "other_source"],
  [{ source: "list" }, undefined, "other_source"],
  [{ source: "list" }, { listed: true }, "match"],
  [{ source: "inbound" }, { listed: true }, "other_source"],
  [{ source: "inbound" }, { inbound: true }, "match"],
  [{ source: "inbound" }, { listed: true, inbound: true }, "match"],
  [{ source: "list" }, { listed: true, inbound: true }, "match"],
  [{ basis: "opt_in" }, undefined, "other_basis"],
  [{ basis: "opt_in" }, { basis: "opt_in" }, "match"],
  [{ basis: "none" }, undefined, "match"],
  [{ fields: ["city=Rome"] }, { fields: { City: " Rome " } }, "match"],
  [{ fields: ["city=Rome"] }, { fields: { city: "rome" } }, "other_field"],
  [{ fields: ["city=Rome|Pisa"] }, { fields: { city: "Pisa" } }, "match"],
  [{ fields: ["city"] }, { fields: { city: " " } }, "other_field"],
  [{ fields: ["city"] }, { fields: { city: "x" } }, "match"],
  [{ fields: ["formula=a=b"] }, { fields: { formula: "a=b" } }, "match"],
  [{ fields: ["city", "plan=pro"] }, { fields: { city: "x", plan: "free" } }, "other_field"],
  [{ timezones: ["Asia/Tokyo", "UTC"] }, { timezone: "UTC" }, "match"],
  [{ timezones: ["UTC"] }, {}, "other_timezone"],
  [{ clicked: "any" }, { ...CLICKED, tracking: { status: "denied" } }, "tracking_not_granted"],
  [{ clicked: "any" }, { ...CLICKED, clicked: [] }, "not_clicked"],
  [{ clicked: "any" }, CLICKED, "match"],
  [{ clicked: "go.example/abc" }, CLICKED, "match"],
  [{ clicked: "abd" }, CLICKED, "not_clicked"],
  [{ messaged: "default" }, undefined, "not_messaged"],
  [{ messaged: "default" }, { ...SENT, status: "in_doubt" }, "not_messaged"],
  [{ messaged: "default" }, SENT, "match"],
  [{ messaged: "default" }, SPRING, "not_messaged"],
  [{ messaged: "spring" }, SENT, "not_messaged"],
  [{ messaged: "spring" }, { ...SPRING, replied: true }, "replied"],
  [{ messaged: "spring" }, { ...SPRING, held_at: "2026-03-11T00:00:00.000Z" }, "replied"],
  [{ messaged: "spring", replied: true }, { ...SPRING, replied: true }, "match"],
  [{ messaged: "spring", replied: true }, SPRING, "not_replied"],
  [{ messaged: "spring", days: 10 }, SPRING, "match"],
  [{ messaged: "spring", days: 11 }, SPRING, "2026-03-21T12:00:00.000Z"],
  [{ messaged: "default", failed: true }, SENT, "not_failed"],
  [{ messaged: "default", failed: true }, { status: "failed" }, "match"],
  [{ messaged: "default" }, { ...SPRING, campaigns: { default: { ...newContact(), ...SENT } } }, "match"],
];

describe("an audience", () => {
  test.each(CASES)("%j judges %j as %s", (audience, contact, expected) => {
    expect(judge(audience, contact)).toBe(expected);
  });

  test("is that of a follow-up unless it wants a reply", () => {
    expect([{}, { messaged: "a" }, { messaged: "a", replied: true as const }].map(isFollowUp)).toEqual([
      false,
      true,
      false,
    ]);
  });
});
