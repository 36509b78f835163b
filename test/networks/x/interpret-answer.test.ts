// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { classifyXRefusal } from "../../../src/networks/x/interpret-answer.ts";
import { answer } from "../../harness/in-process/local-test-servers.ts";

const X = "https://api.x.com/2/problems/";
const TWITTER = "https://api.twitter.com/2/problems/";

const problem = (slug: string, title: string, detail: string, status?: number) => ({
  type: slug,
  title,
  detail,
  status,
});
const legacy = (code: number, message = "words") => ({ errors: [{ code, message }] });
const blank = (detail: string, title = "Forbidden") => problem("about:blank", title, detail);

test.each<[number, unknown, string]>([
  [400, problem(`${X}invalid-request`, "Invalid Request", "One or more parameters was invalid."), "rejected"],
  [400, "", "rejected"],
  [400, { code: 1, message: "odd" }, "rejected"],
  [401, blank("Unauthorized", "Unauthorized"), "unauthorized"],
  [401, "", "unauthorized"],
  [400, legacy(89), "unauthorized"],
  [403, legacy(32), "unauthorized"],
  [
    402,
    problem(`${TWITTER}credits`, "CreditsDepleted", "Your enrolled account [9] does not have any credits"),
    "credits_depleted",
  ],
  [402, problem(`${X}credits-depleted`, "Payment Required", ""), "credits_depleted"],
  [402, "", "credits_depleted"],
  [403, problem(`${X}credits`, "CreditsDepleted", ""), "credits_depleted"],
  [403, blank("You do not have permission to DM one or more participants."), "recipient_closed"],
  [
    403,
    problem(`${X}x`, "Forbidden", "You do not have permission to DM one or more participants."),
    "recipient_closed",
  ],
  [403, legacy(349, "You cannot send messages to this user."), "recipient_closed"],
  [403, legacy(150), "recipient_closed"],
  [403, blank("You cannot send messages to users who are not following you."), "recipient_closed"],
  [403, blank("This operation is not permitted."), "not_permitted"],
  [403, { code: 403, message: "This operation is not permitted." }, "not_permitted"],
  [403, problem(`${X}client-forbidden`, "Client Forbidden", "App not enrolled"), "app_not_enrolled"],
  [403, problem(`${TWITTER}client-forbidden`, "Client Forbidden", ""), "app_not_enrolled"],
  [403, legacy(453, "You currently have access to a subset of X API V2 endpoints"), "app_not_enrolled"],
  [403, { code: 453, message: "You currently have access to a subset" }, "app_not_enrolled"],
  [403, { code: 349, message: "words" }, "recipient_closed"],
  [403, { code: 326, message: "words" }, "sender_restricted"],
  [400, { code: 89, message: "words" }, "unauthorized"],
  [400, { code: 88, message: "words" }, "rate_limited"],
  [403, { code: "326", message: "words" }, "not_permitted"],
  [403, legacy(226, "This request looks automated"), "sender_restricted"],
  [403, legacy(326), "sender_restricted"],
  [403, legacy(64), "sender_restricted"],
  [403, legacy(151), "recipient_closed"],
  [403, legacy(476, "Sender is not verified to send message requests"), "recipient_closed"],
  [403, { code: 476, message: "words" }, "recipient_closed"],
  [403, legacy(9999, "This operation is not permitted."), "recipient_closed"],
  [403, legacy(261, "Application cannot perform write actions."), "app_not_enrolled"],
  [403, legacy(416, "Invalid / suspended application"), "app_not_enrolled"],
  [403, legacy(93), "missing_scope"],
  [403, legacy(220), "missing_scope"],
  [403, "", "sender_restricted"],
  [403, "<html>", "sender_restricted"],
  [403, blank("Something new"), "not_permitted"],
  [403, blank("Forbidden"), "missing_scope"],
  [403, problem(`${X}unsupported-authentication`, "Unsupported Authentication", "Application-Only"), "missing_scope"],
  [403, problem(`${TWITTER}not-authorized-for-resource`, "Authorization Error", "Sorry"), "rejected"],
  [403, blank("You are not allowed to create a message with duplicate content."), "duplicate"],
  [403, legacy(187, "Status is a duplicate."), "duplicate"],
  [404, problem(`${X}resource-not-found`, "Not Found Error", "Could not find user"), "rejected"],
  [408, "", "unavailable"],
  [413, "", "rejected"],
  [429, blank("Too Many Requests", "Too Many Requests"), "rate_limited"],
  [429, legacy(88, "Rate limit exceeded"), "rate_limited"],
  [400, legacy(88), "rate_limited"],
  [429, "", "rate_limited"],
  [
    429,
    problem(`${TWITTER}usage-capped`, "UsageCapExceeded", "Usage cap exceeded: Monthly product cap"),
    "usage_capped",
  ],
  [429, problem(`${X}usage-capped`, "Spend cap", ""), "usage_capped"],
  [429, { title: "UsageCapExceeded" }, "usage_capped"],
  [500, legacy(131), "unavailable"],
  [500, legacy(88), "unavailable"],
  [500, blank("You do not have permission to DM one or more participants."), "unavailable"],
  [502, "<html>", "unavailable"],
  [503, legacy(130, "Over capacity"), "unavailable"],
  [304, "", "unavailable"],
  [999, "", "unavailable"],
])("X's answer %i %j means %s", (status, body, meaning) => {
  const refusal = classifyXRefusal(answer(status, body));
  const said: string = refusal.kind === "stopped" ? refusal.reason : refusal.kind;
  expect(said).toBe(meaning);
});

test("the detail has status, words and codes, but no user's name or id", () => {
  const detailOf = (status: number, body: unknown): string => {
    const refusal = classifyXRefusal(answer(status, body));
    return "detail" in refusal ? refusal.detail : "";
  };
  expect(detailOf(404, problem(`${X}r`, "Not Found Error", "Could not find user with id: [2244994945]."))).toBe(
    "X answered 404 Not Found Error Could not find user with id: […].",
  );
  expect(detailOf(403, legacy(349, "You cannot send messages to @jane."))).toBe(
    "X answered 403 You cannot send messages to […] (code 349)",
  );
  expect(detailOf(403, { code: 453, message: "No access" })).toBe("X answered 403 No access (code 453)");
  expect(detailOf(403, blank("Forbidden"))).toBe("X answered 403 Forbidden");
  expect(detailOf(400, blank(`a\n${"word ".repeat(500)}`)).length).toBe(200);
});
