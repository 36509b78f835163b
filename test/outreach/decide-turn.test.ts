// On the memory harness.
import { describe, expect, test } from "bun:test";
import type { NewEvent } from "../../src/log/event-log.ts";
import { decideTurn, newSkips, type TurnCommand } from "../../src/outreach/decide.ts";
import type { OutreachState } from "../../src/outreach/decide.ts";
import { createPersonalCode } from "../../src/template/short-link.ts";
import { parseTemplate } from "../../src/template/template.ts";
import { given } from "../harness/memory/decider.ts";
import { RULES } from "../harness/memory/outreach.ts";
import { addedOf } from "../harness/memory/new-events.ts";

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

describe("one person's turn", () => {
  test("given consent, the intent holds all that the network will be asked, and the day it counts for", () => {
    const intent = { attempt_id: "a", run_id: "r", recipient: ANN, text: "Hi Ann", account_id: SELF.id };
    given(authorized, opted)
      .when(turn())
      .thenEvents({ type: "DirectMessageAttempted", data: { ...intent, day: NOW.day, timezone: "UTC" } });
  });

  describe("with a template that holds a link", () => {
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

    test("the link is added with the first message that holds it, and never again", () => {
      given(authorized, opted).when(turn({}, withLink)).thenEvents(added, intent({}));
      given(authorized, opted, added).when(turn({}, withLink)).thenEvents(intent({}));
    });

    test("a recipient who granted tracking gets a link of their own, whose clicks count for the shared one", () => {
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

    test.each(["denied", "unknown"] as const)("with tracking %s they get the shared one", (tracking) => {
      given(authorized, addedOf(ANN, { tracking }), added)
        .when(turn({ linkSecret: "secret" }, withLink))
        .thenEvents(intent({}));
    });
  });

  test("given no consent, it is a skip; and nothing where the log has it already", () => {
    given(authorized).when(turn()).thenEvents(skippedIn("r"));
    given(authorized, skippedIn("r0")).when(turn()).thenEvents();
  });

  test("given another account, the run ends", () => {
    given(authorized, opted)
      .when(turn({ accountId: "2" }))
      .thenRefused({ end: "not_authorized" });
  });

  test("given a day without places, the run ends; but a skip takes none", () => {
    const full = { ...RULES, dailyLimit: 0 };
    given(authorized, opted).when(turn({}, full)).thenRefused({ end: "daily_limit_reached" });
    given(authorized).when(turn({}, full)).thenEvents({ type: "DirectMessageSkipped" });
  });
});

test("skips of one batch are recorded once a person and reason, and none that the log has", () => {
  const verdict = { verdict: "skip", reason: "no_consent" } as const;
  const refused = [
    { recipient: ANN, verdict },
    { recipient: ANN, verdict },
    { recipient: { username: "bo" }, verdict: { verdict: "pass" } as const },
    { recipient: { username: "Cy" }, verdict },
    { recipient: { username: "cy" }, verdict },
  ];
  const recipients = (state: OutreachState) =>
    newSkips(state, "r", refused).map(({ data }) => ("recipient" in data ? data.recipient : null));
  given()
    .when(recipients)
    .thenAnswers([ANN, { username: "Cy" }]);
  given(skippedIn("r0"))
    .when(recipients)
    .thenAnswers([{ username: "Cy" }]);
});
