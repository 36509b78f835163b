// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { DataOf } from "../../events/event-types-and-codec.ts";
import type { FailureReason } from "../../events/outreach.ts";
import { parseOpenHours, type SendWindow } from "../../src/config/send-window.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { decideTurn, newSkips, type TurnCommand } from "../../src/outreach/decide.ts";
import type { OutreachState } from "../../src/outreach/decide.ts";
import { FAILURE_TRIES_MIN } from "../../src/outreach/quota-and-reasons-to-end-run.ts";
import { createPersonalCode } from "../../src/template/short-link.ts";
import { parseTemplate } from "../../src/template/template.ts";
import { given } from "../harness/in-process/given-when-then-for-deciders.ts";
import { RULES } from "../harness/in-process/simulated-outreach-processes.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const ANN = { id: "7", username: "ann" };
const SELF = { id: "1", username: "us", name: "Us" };
const MS = Date.UTC(2026, 2, 1, 8);
const NOW = { ms: MS, clockMs: MS, day: "2026-03-01", timezone: "UTC" };

const authorized: NewEvent = {
  type: "AccountAuthorized",
  data: { user: SELF, scopes: [], expires_at: "2026-03-01T10:00:00.000Z" },
};

const turn =
  (more: Partial<TurnCommand> = {}, rules = RULES) =>
  (state: OutreachState) =>
    decideTurn(state, rules, {
      user: { ...ANN, name: "Ann" } as TurnCommand["user"],
      attempt_id: "a",
      run_id: "r",
      accountId: SELF.id,
      now: NOW,
      ...more,
    });

const opted: NewEvent = addedOf(ANN);

const skippedIn = (run_id: string): NewEvent => ({
  type: "DirectMessageSkipped",
  data: { run_id, recipient: ANN, reason: "no_consent" },
});

describe("a recipient's turn", () => {
  test("records an intent with text, account and quota day, given consent", () => {
    const intent = { attempt_id: "a", run_id: "r", recipient: ANN, text: "Hi Ann", account_id: SELF.id };
    given(authorized, opted)
      .when(turn())
      .thenEvents({ type: "DirectMessageAttempted", data: { ...intent, day: NOW.day, timezone: "UTC" } });
  });

  test("records the real time in the intent after a correction of the log's time", () => {
    const data = { at: "2026-03-01T07:00:00.000Z", day: NOW.day, timezone: "UTC" };
    given(authorized, opted, { type: "LogTimeCorrected", data })
      .when(turn())
      .thenEvents({
        type: "DirectMessageAttempted",
        data: { attempt_id: "a", decided_at: "2026-03-01T08:00:00.000Z" },
      });
  });

  describe("with a link in the template", () => {
    const template = parseTemplate("Hi {{name}}: {{link https://shop.example/offer}}", "https://go.example");
    const withLink = { ...RULES, template };
    const [{ code } = { code: "" }] = template.variants[0]!.links;
    const added: NewEvent = {
      type: "LinkAdded",
      data: { domain: "go.example", code, target: "https://shop.example/offer", template: template.id, variant: "A" },
    };
    const intent = (more: object): NewEvent => ({
      type: "DirectMessageAttempted",
      data: {
        attempt_id: "a",
        run_id: "r",
        recipient: ANN,
        text: `Hi Ann: https://go.example/${code}`,
        links: [`go.example/${code}`],
        variant: "A",
        template: template.id,
        basis: "opt_in",
        source: "list",
        account_id: SELF.id,
        day: NOW.day,
        timezone: "UTC",
        ...more,
      },
    });
    const tracked = addedOf(ANN, { tracking: "granted" });

    test("the first message adds the link, later ones do not", () => {
      given(authorized, opted).when(turn({}, withLink)).thenEvents(added, intent({}));
      given(authorized, opted, added).when(turn({}, withLink)).thenEvents(intent({}));
    });

    test("message and link carry the operator's name of the template", () => {
      const template_name = "Autumn invite";
      given(authorized, opted)
        .when(turn({}, { ...RULES, template: { ...template, name: template_name } }))
        .thenEvents({ ...added, data: { ...added.data, template_name } }, intent({ template_name }));
    });

    test("a recipient who granted tracking gets a personal link in place of the shared one", () => {
      const own = createPersonalCode("secret", { code });
      const personal_links = [{ code: own, link: `go.example/${code}` }];
      given(authorized, tracked)
        .when(turn({ linkSecret: "secret" }, withLink))
        .thenEvents(
          added,
          intent({ text: `Hi Ann: https://go.example/${own}`, personal_links, replaced_links: [`go.example/${code}`] }),
        );
      expect([own, createPersonalCode("other", { code })]).toEqual([
        expect.stringMatching(/^[1-9A-HJ-NP-Za-km-z]{13}$/),
        expect.not.stringMatching(own),
      ]);
    });

    test.each(["denied", "unknown"] as const)("a recipient with tracking %s gets the shared link", (tracking) => {
      given(authorized, addedOf(ANN, { tracking }), added)
        .when(turn({ linkSecret: "secret" }, withLink))
        .thenEvents(intent({}));
    });
  });

  test("records a skip without consent, once", () => {
    given(authorized).when(turn()).thenEvents(skippedIn("r"));
    given(authorized, skippedIn("r0")).when(turn()).thenEvents();
  });

  test("ends the run if another account is linked", () => {
    given(authorized, opted)
      .when(turn({ accountId: "2" }))
      .thenRefused({ end: "not_authorized" });
  });

  test("ends the run if the quota is used up, but still records a skip", () => {
    const full = { ...RULES, dailyLimit: 0 };
    given(authorized, opted).when(turn({}, full)).thenRefused({ end: "daily_limit_reached" });
    given(authorized).when(turn({}, full)).thenEvents({ type: "DirectMessageSkipped" });
  });

  describe("with a sending window that is closed in the quota's zone", () => {
    // NOW is a Sunday, 08:00 UTC.
    const hours = parseOpenHours("Sun 17:00-18:00") ?? [];
    const window: SendWindow = { text: "", hours, zone: "quota", whenClosed: "end" };
    const rules = { ...RULES, window };
    const later = { end: undefined, isWindowClosed: true };

    test("the turn is postponed, but a skip is recorded", () => {
      given(authorized, opted).when(turn({}, rules)).thenRefused(later);
      given(authorized).when(turn({}, rules)).thenEvents(skippedIn("r"));
    });

    test("the recipient's known zone decides if the window follows it", () => {
      const own = { ...rules, window: { ...window, zone: "recipient" } } as const;
      const inTokyo = addedOf(ANN, { timezone: "Asia/Tokyo" });
      given(authorized, inTokyo).when(turn({}, rules)).thenRefused(later);
      given(authorized, inTokyo).when(turn({}, own)).thenEvents({ type: "DirectMessageAttempted" });
      given(authorized, opted).when(turn({}, own)).thenRefused(later);
    });

    test("the window must be open by the clock and by the newest event", () => {
      const [open, closed] = [Date.UTC(2026, 2, 1, 17), Date.UTC(2026, 2, 1, 8)];
      given(authorized, opted)
        .when(turn({ now: { ...NOW, ms: open, clockMs: closed } }, rules))
        .thenRefused(later);
      given(authorized, opted)
        .when(turn({ now: { ...NOW, ms: open, clockMs: open } }, rules))
        .thenEvents({ type: "DirectMessageAttempted" });
    });
  });

  describe("in a run with a selection", () => {
    const started = (more: Partial<DataOf<"RunStarted">>): NewEvent => ({
      type: "RunStarted",
      data: { run_id: "r", dry_run: false, ...more },
    });
    const other = { attempt_id: "b", run_id: "r", recipient: { id: "8", username: "bo" } };
    const attempted: NewEvent = {
      type: "DirectMessageAttempted",
      data: { ...other, text: "Hi", variant: "A", day: NOW.day, timezone: "UTC" },
    };
    const failed = (frees_quota: boolean): NewEvent => ({
      type: "DirectMessageFailed",
      data: { ...other, reason: frees_quota ? "rejected" : "not_delivered", detail: "", frees_quota, retry: false },
    });
    const limited = started({ limit: 1 });

    test("the limit counts messages that were sent or may have been, and ends the run", () => {
      given(authorized, opted, limited).when(turn()).thenEvents({ type: "DirectMessageAttempted" });
      given(authorized, opted, limited, attempted).when(turn()).thenRefused({ end: "limit_reached" });
      given(authorized, opted, limited, attempted, failed(false)).when(turn()).thenRefused({ end: "limit_reached" });
      given(authorized, opted, limited, attempted, failed(true))
        .when(turn())
        .thenEvents({ type: "DirectMessageAttempted" });
    });

    test.each([
      [{ variant: "A" }, { variant: "B" }],
      [{ basis: "opt_in" }, { basis: "dm_first" }],
      [{ source: "list" }, { source: "followers" }],
    ] as const)("the selection %j records an intent, %j records nothing", (wanted, others) => {
      given(authorized, opted, started(wanted)).when(turn()).thenEvents({ type: "DirectMessageAttempted" });
      given(authorized, opted, started(others)).when(turn()).thenEvents();
    });
  });

  test("ends the run if the share of failures is too high among enough messages", () => {
    const rules = { ...RULES, stopAfterFailures: 0.3 };
    const tried = (failures: number, sent: number, reason: FailureReason = "rejected"): NewEvent[] => [
      { type: "RunStarted", data: { run_id: "r", dry_run: false } },
      ...Array.from({ length: failures + sent }, (_, nth): NewEvent[] => {
        const about = { attempt_id: `a${nth}`, run_id: "r", recipient: { id: `1${nth}`, username: `u${nth}` } };
        const intent = { ...about, text: "Hi", variant: "A", day: NOW.day, timezone: "UTC" };
        const failure = { ...about, reason, detail: "", frees_quota: true, retry: false };
        return [
          { type: "DirectMessageAttempted", data: intent },
          nth < failures
            ? { type: "DirectMessageFailed", data: failure }
            : { type: "DirectMessageSent", data: { ...about, message_id: `m${nth}`, settled_by: "answer" } },
        ];
      }).flat(),
    ];
    const end = { end: "too_many_failures" };
    given(authorized, opted, ...tried(3, FAILURE_TRIES_MIN - 3))
      .when(turn({}, rules))
      .thenRefused(end);
    given(authorized, opted, ...tried(3, FAILURE_TRIES_MIN - 3))
      .when(turn())
      .thenEvents({ type: "DirectMessageAttempted" });
    given(authorized, opted, ...tried(3, FAILURE_TRIES_MIN - 4))
      .when(turn({}, rules))
      .thenEvents({ type: "DirectMessageAttempted" });
    given(authorized, opted, ...tried(2, FAILURE_TRIES_MIN - 2))
      .when(turn({}, rules))
      .thenEvents({ type: "DirectMessageAttempted" });
    // These messages failed before the network was asked to send them, so they do not count as failures of the network.
    given(authorized, opted, ...tried(8, 8, "withdrawn"))
      .when(turn({}, rules))
      .thenEvents({ type: "DirectMessageAttempted" });
  });
});

test("the skips of a batch are recorded once per recipient and reason, unless already known", () => {
  const verdict = { verdict: "skip", reason: "no_consent" } as const;
  const refused = [
    { recipient: ANN, verdict },
    { recipient: ANN, verdict },
    { recipient: { username: "bo" }, verdict: { verdict: "pass", reason: "held" } as const },
    { recipient: { username: "Cy" }, verdict },
    { recipient: { username: "cy" }, verdict },
  ];
  const recipients = (state: OutreachState) =>
    newSkips(state, RULES, "r", refused).map(({ data }) => ("recipient" in data ? data.recipient : null));
  given()
    .when(recipients)
    .thenAnswers([ANN, { username: "Cy" }]);
  given(skippedIn("r0"))
    .when(recipients)
    .thenAnswers([{ username: "Cy" }]);
});
