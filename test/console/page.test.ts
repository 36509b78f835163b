// On the memory harness.
import { expect, test } from "bun:test";
import { account } from "../../projections/account.ts";
import { clicks } from "../../projections/clicks.ts";
import { deliveries } from "../../projections/deliveries.ts";
import { fold } from "../../projections/projection.ts";
import { stats } from "../../projections/stats.ts";
import { suspected } from "../../projections/suspected.ts";
import { testLog } from "../harness/memory/events.ts";
import { consolePage, type ConsoleView } from "../../src/console/page.ts";

function view(): ConsoleView {
  return {
    stats: stats.initial(),
    account: account.initial(),
    run: null,
    quota: { limit: 100, used: 0 },
    inDoubt: 0,
    clicks: clicks.initial(),
    suspected: suspected.initial(),
    deliveries: deliveries.initial(),
    position: 1,
    events: [],
  };
}

/** The cells of the row that begins with `first`. */
function rowOf(page: string, first: string): string[] {
  const row = page.split("<tr>").find((one) => one.startsWith(`<td>${first}</td>`)) ?? "";
  return [...row.matchAll(/<td>(.*?)<\/td>/g)].map(([, cell = ""]) => cell);
}

test("a stopped channel shows since when and why, the others nothing, and no credential", () => {
  const shown = view();
  shown.deliveries.chat.suspended = {
    since: "2026-11-20T10:00:00.000Z",
    network: "slack",
    detail: "Slack answered 410 <channel_is_archived>",
    credential: "keyed-hash",
  };
  const page = consolePage(shown);
  expect(rowOf(page, "chat").at(-1)).toBe(
    "since 2026-11-20T10:00:00.000Z: Slack answered 410 &lt;channel_is_archived&gt;",
  );
  expect(rowOf(page, "messaging").at(-1)).toBe("");
  expect(page).not.toContain("keyed-hash");
});

test("clicks that X likely made itself are told, of all links and of each", () => {
  const log = testLog();
  const link = { domain: "go.example", short_code: "a", original_url: "https://x.example" };
  for (let count = 0; count < 3; count++) {
    log.add("LinkClicked", { ...link, event: "click", bot: false, channels: [] });
  }
  const shown = { ...view(), clicks: fold(clicks, clicks.initial(), log.events) };
  shown.suspected.all.suspected = 2;
  shown.suspected.links.set("go.example/a", { clicks: 3, bots: 0, suspected: 2, last_position: 3 });
  const page = consolePage(shown);
  expect(rowOf(page, "go.example/a")).toEqual(["go.example/a", "3", "2", "0", log.events.at(-1)?.time ?? ""]);
  expect(page).toContain("3 by people (of these 2 suspected to be X's own), 0 by bots");
});
