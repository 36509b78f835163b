// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import type { Audience, CampaignDefinition } from "../../../events/campaign.ts";
import { campaigns, countPredecessors } from "../../../projections/campaigns.ts";
import { contacts } from "../../../projections/contacts.ts";
import { links } from "../../../projections/links.ts";
import { findCampaignFault } from "../../../src/outreach/campaigns/check-campaign.ts";
import { loadConfig } from "../../../src/config/config.ts";

const config = loadConfig({ CONTACT_GAP_DAYS: "20", LINK_BASE: "https://go.example" }, () => "");

/** States with a chain of campaigns: `one` follows up `spring`, and `two` follows up `one`. */
function states() {
  const state = campaigns.initial();
  const chain: readonly (readonly [string, Audience])[] = [
    ["spring", {}],
    ["one", { messaged: "spring" }],
    ["two", { messaged: "one" }],
  ];
  for (const [name, audience] of chain) {
    const event = { type: "CampaignCreated", data: { name, text: "Hi", audience }, position: 1, time: "2026-03-01" };
    campaigns.evolve(state, event as never);
  }
  const old = { name: "old", text: "Hi", audience: {}, gap_days: 10 };
  campaigns.evolve(state, { type: "CampaignCreated", data: old, position: 1, time: "2026-03-01" } as never);
  const people = contacts.initial();
  people.fields.set("City", 2);
  return { campaigns: state, contacts: people, links: links.initial() };
}

function fault(changes: Partial<CampaignDefinition>) {
  const found = findCampaignFault(states(), config, { name: "new", text: "Hi", audience: {}, ...changes });
  return found === undefined ? undefined : `${found.member}: ${found.why}`;
}

describe("a campaign", () => {
  test.each<readonly [Partial<CampaignDefinition>, string | undefined]>([
    [{}, undefined],
    [{ gap_days: 20 }, undefined],
    [{ gap_days: 19 }, "gap_days: the gap is below CONTACT_GAP_DAYS, 20 days"],
    [{ name: "old", gap_days: 10 }, undefined],
    [{ name: "old", gap_days: 11 }, "gap_days: the gap is below CONTACT_GAP_DAYS, 20 days"],
    [{ text: "Hi {{name" }, "text: line 1, column 4: {{ is not closed by }} on its line"],
    [
      { text: "{{optout}}" },
      "text: line 1, column 1: {{optout}} needs PUBLIC_URL, an address that recipients can open",
    ],
    [{ audience: { fields: ["city=Rome", "town"] } }, "fields: no imported recipient has the field town"],
    [{ audience: { fields: ["city=Rome|"] } }, "fields: a value for city is blank"],
    [{ audience: { fields: ["CITY"], timezones: ["Europe/Rome"] } }, undefined],
    [
      { audience: { timezones: ["europe/rome"] } },
      "timezones: europe/rome is no known time zone; it is spelt Europe/Rome",
    ],
    [{ audience: { timezones: ["Mars/Base"] } }, "timezones: Mars/Base is no known time zone"],
    [{ audience: { clicked: "any" } }, undefined],
    [{ audience: { clicked: "go.example/x" } }, "clicked: the log has no link go.example/x"],
    [{ audience: { days: 3 } }, "messaged: days, replied and failed need messaged beside them"],
    [{ audience: { messaged: "default", days: 3 } }, undefined],
    [{ audience: { messaged: "never" } }, 'messaged: there is no campaign "never"'],
    [{ audience: { messaged: "" } }, 'messaged: there is no campaign ""'],
    [{ audience: { fields: ["=Rome"] } }, "fields: a condition names no field; write city=Rome, or city"],
    [{ audience: { messaged: "one" } }, undefined],
    [{ audience: { messaged: "two" } }, "messaged: a chain has at most 2 follow-ups after a first message"],
    [
      { name: "spring", audience: { messaged: "spring" } },
      "messaged: the campaigns would follow each other in a circle",
    ],
    [{ name: "spring", audience: { messaged: "two" } }, "messaged: the campaigns would follow each other in a circle"],
    [
      { name: "spring", audience: { messaged: "default" } },
      "messaged: a chain has at most 2 follow-ups after a first message",
    ],
  ])("%j has the fault %j", (changes, expected) => {
    expect(fault(changes)).toBe(expected);
  });

  test("knows how many campaigns come before it", () => {
    const { named } = states().campaigns;
    expect([...named.values()].map((one) => countPredecessors({ named }, one))).toEqual([0, 1, 2, 0]);
  });
});
