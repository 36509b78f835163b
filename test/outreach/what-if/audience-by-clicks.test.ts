// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { createWhatIf } from "../../../src/outreach/what-if/decide-recorded-runs-again.ts";
import { parseTemplate } from "../../../src/template/template.ts";
import { testLog } from "../../harness/in-process/number-and-fold-events.ts";
import { addedOf, clickOf } from "../../harness/in-process/make-recipient-and-click-events.ts";

const ANN = { id: "7", username: "ann" };
const TEMPLATE = parseTemplate("Hi {{name}} {{link https://shop.example}}", "https://go.example");
const SENDS = { dailyLimit: 10, requireConsent: true, stopAfterFailures: undefined, window: undefined, gapDays: 0 };

/**
 * Asks what would have happened under a daily limit of 5, which no day of these events reaches, so that nothing should
 * change.
 */
async function ask(events: readonly NewEvent[]) {
  const today = { ...SENDS, template: TEMPLATE, timezone: "UTC" };
  const identities = { hashes: () => [], isForgotten: () => false };
  const asked = { changes: { dailyLimit: 5 }, isBot: undefined, stopWords: undefined, today, identities, limit: 3 };
  const whatIf = createWhatIf({ ...asked, sources: ["list"], runMaxMs: 3_600_000 });
  const log = testLog();
  for (const { type, data } of events) log.add(type, data);
  for (const event of log.events) whatIf.take(event);
  return whatIf.finish(Date.parse(log.events.at(-1)!.time));
}

const NO_COUNTS = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };

/** Events of a run that writes to Ann. */
function run(campaign: string | undefined, more: object): NewEvent[] {
  const named = campaign === undefined ? {} : { campaign };
  const run_id = `run of ${campaign}`;
  const attempt = { attempt_id: `to ${campaign}`, run_id, recipient: ANN, ...named };
  const text = { text: "Hi", variant: "A", day: "2026-11-20", timezone: "UTC", source: "list", ...more } as const;
  return [
    { type: "RunStarted", data: { run_id, dry_run: false, ...named } },
    { type: "DirectMessageAttempted", data: { ...attempt, ...text } },
    { type: "DirectMessageSent", data: { ...attempt, message_id: run_id, settled_by: "answer" } },
    { type: "RunFinished", data: { run_id, reason: "completed", ...NO_COUNTS } },
  ];
}

test("a what-if knows the clicks by which a campaign chose its recipients", async () => {
  const audience = { clicked: "go.example/a" };
  const user = { ...ANN, id: "1", name: "We" };
  const added = { consent_at: "2026-01-01", consent_source: "form", tracking: "granted" } as const;
  const before: NewEvent[] = [
    { type: "AccountAuthorized", data: { user, scopes: ["dm.write"], expires_at: "2027-01-01T00:00:00.000Z" } },
    addedOf(ANN, added),
    { type: "CampaignCreated", data: { name: "spring", text: "Hello {{name}}", audience } },
    ...run(undefined, { personal_links: [{ code: "own", link: "go.example/a" }] }),
    ...Array.from({ length: 11 }, () => clickOf()),
  ];
  const click: NewEvent = { type: "PersonalLinkClicked", data: { code: "own" } };
  const found = await ask([...before, click, ...run("spring", {})]);
  expect([found.unexplained, found.total.messages]).toEqual([0, { was: 2, would: 2 }]);
  // Control: without the click, the campaign would not send the log's second message.
  expect((await ask([...before, ...run("spring", {})])).unexplained).toBe(1);
});
