// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { createSafeFetch, type SafeFetch } from "../../src/networks/safe-fetch.ts";
import { createX } from "../../src/networks/x/x-api.ts";
import { REFUSED_IN_A_ROW_MAX } from "../../src/outreach/quota-and-reasons-to-end-run.ts";
import { isWhole } from "../harness/case-count.ts";
import { LOG_ENGINES, type LogEngine } from "../harness/in-process/temporary-log.ts";
import { openOutreachOn } from "../harness/in-process/simulated-outreach-processes.ts";
import { startXServer, type Answer } from "./x-server.ts";

const MINUTE_MS = 60_000;
const START = Date.parse("2026-03-01T08:00:00.000Z");

/**
 * Time limit of the client for requests that the server leaves unanswered, in ms. It is shorter than the product's
 * limit, to keep the test fast.
 */
const SILENCE_MS = 1_000;

/**
 * Opens a log with recipients 10 and 11, and a fake X over HTTP that gives these answers, in this order, to the first
 * requests to send.
 */
function openWithX(...answers: Answer[]) {
  return openWithXOn("in a file", ...answers);
}

async function openWithXOn(engine: LogEngine, ...answers: Answer[]) {
  const stack = new AsyncDisposableStack();
  const world = stack.use(await openOutreachOn(engine));
  const server = stack.use(await startXServer(world.time.now));
  server.answers.push(...answers);
  const real = createSafeFetch({ allowedOrigins: [server.url] });
  const safeFetch: SafeFetch = (url, request) =>
    real(
      url,
      request.method === "POST" && server.answers[0]?.fault === "silence"
        ? { ...request, timeoutMs: SILENCE_MS }
        : request,
    );
  Object.assign(world.network, createX({ apiUrl: server.url, safeFetch, clock: world.time.now }));
  await world.list("10", "11");
  const instance = await world.start();
  return {
    ...instance,
    world,
    asked: server.asked,
    used: () => instance.projector.state("quota").days.get("2026-03-01"),
    [Symbol.asyncDispose]: () => stack[Symbol.asyncDispose](),
  };
}

const X = "https://api.x.com/2/problems/";
const TWITTER = "https://api.twitter.com/2/problems/";

const problem = (status: number, title: string, detail: string, type = "about:blank"): Answer => ({
  status,
  headers: { "content-type": "application/problem+json" },
  body: { title, detail, type, status },
});
const legacy = (status: number, code: number, message = "words"): Answer => ({
  status,
  body: { errors: [{ code, message }] },
});
const coded = (status: number, code: number, message: string): Answer => ({ status, body: { code, message } });
const named = (name: string, answer: Answer) => [name, answer] as const;

const CREDITS = "Your enrolled account [1] does not have any credits to fulfill this request.";
const CAPPED = "Usage cap exceeded: Monthly product cap";
const NO_DM = "You do not have permission to DM one or more participants.";

/** Builds the rate-limit headers of an answer; `inMs` is the time until the limit resets. */
const windowOf = (remaining: number, inMs: number, prefix = "x-rate-limit") => ({
  [`${prefix}-limit`]: "40000",
  [`${prefix}-remaining`]: String(remaining),
  [`${prefix}-reset`]: String((START + inMs) / 1000),
});

describe("an answer that the account may not send", () => {
  const STOPS = {
    credits_depleted: [
      named("402 of api.twitter.com", problem(402, "CreditsDepleted", CREDITS, `${TWITTER}credits`)),
      named("402 of api.x.com", problem(402, "Payment Required", CREDITS, `${X}credits-depleted`)),
      named("402 with a code", coded(402, 402, "Payment Required")),
      named("402 without a word", { status: 402 }),
    ],
    usage_capped: [
      named("429 of api.twitter.com with requests left", {
        ...problem(429, "UsageCapExceeded", CAPPED, `${TWITTER}usage-capped`),
        headers: windowOf(39_999, 15 * MINUTE_MS),
      }),
      named("429 of api.x.com", problem(429, "Too Many Requests", CAPPED, `${X}usage-capped`)),
      named("429 by its title", { status: 429, body: { title: "UsageCapExceeded" } }),
    ],
    sender_restricted: [
      named("code 226", legacy(403, 226, "This request looks like it might be automated.")),
      named("code 326", legacy(403, 326)),
      named("code 326 at the top", coded(403, 326, "words")),
      named("code 64", legacy(403, 64)),
      named("403 without a word", { status: 403, body: "<html>" }),
    ],
    app_not_enrolled: [
      named("403 of an app without access", problem(403, "Client Forbidden", "Not enrolled", `${X}client-forbidden`)),
      named("the same of api.twitter.com", problem(403, "Client Forbidden", "No", `${TWITTER}client-forbidden`)),
      named("code 453", legacy(403, 453, "You currently have access to a subset of X API V2 endpoints")),
      named("code 453 at the top", coded(403, 453, "You currently have access to a subset of X API V2 endpoints")),
    ],
    missing_scope: [
      named("403 Forbidden", problem(403, "Forbidden", "Forbidden")),
      named("403 of an app's token", problem(403, "Unsupported", "Application-Only", `${X}unsupported-authentication`)),
      named("the same of api.twitter.com", problem(403, "No", "No", `${TWITTER}unsupported-authentication`)),
    ],
  } as const;

  const table = Object.entries(STOPS).flatMap(([reason, answers]) =>
    answers.map(([name, answer]) => [reason, name, answer] as const),
  );
  test.each(table)("ends the run as %s, is announced, and loses no recipient: %s", async (reason, _name, answer) => {
    await using outreach = await openWithX(answer);
    const { run, world, asked, announced, used, projector } = outreach;
    expect(await run()).toMatchObject({ reason, sent: 0, failed: 1, in_doubt: 0, usage: { sends: 0 } });
    expect(asked).toEqual(["10"]);
    expect(await world.events("DirectMessageFailed")).toMatchObject([
      { data: { reason, recipient: { id: "10" }, frees_quota: true, retry: true } },
    ]);
    expect(announced).toEqual([`outreach stopped: ${reason}`]);
    expect(used()).toBe(0);
    expect(projector.state("run").current).toBeNull();
    expect(projector.state("account").authorized).toBe(true);
    expect(await run()).toMatchObject({ reason: "completed", sent: 2 });
    // After a restriction of the account, the run tries the refused recipient last, because the refusal may have
    // concerned only that recipient.
    expect(asked).toEqual(reason === "sender_restricted" ? ["10", "11", "10"] : ["10", "10", "11"]);
  });
});

describe("an answer that the grant is dead", () => {
  test.each([
    named("401", problem(401, "Unauthorized", "Unauthorized")),
    named("401 without a word", { status: 401 }),
    named("401 with a code", coded(401, 99, "Unable to verify your credentials")),
    named("code 89", legacy(401, 89, "Invalid or expired token.")),
    named("code 32 with 403", legacy(403, 32, "Could not authenticate you.")),
    named("code 215 with 400", legacy(400, 215, "Bad authentication data.")),
  ])("ends the run, and loses no recipient: %s", async (_name, answer) => {
    await using outreach = await openWithX(answer);
    const { run, world, asked, used } = outreach;
    expect(await run()).toMatchObject({ reason: "not_authorized", sent: 0, failed: 1, in_doubt: 0 });
    expect(asked).toEqual(["10"]);
    expect(await world.events("DirectMessageFailed")).toMatchObject([
      { data: { reason: "unauthorized", frees_quota: true, retry: true } },
    ]);
    expect(used()).toBe(0);
    expect(await run()).toMatchObject({ reason: "completed", sent: 2 });
  });
});

describe("an answer about the recipient", () => {
  test.each([
    ["recipient_closed", ...named("403", problem(403, "Forbidden", NO_DM))],
    ["recipient_closed", ...named("403 with another type", problem(403, "Forbidden", NO_DM, `${X}forbidden`))],
    ["recipient_closed", ...named("403 with a code", coded(403, 403, NO_DM))],
    ["recipient_closed", ...named("code 349 in other words", legacy(403, 349))],
    ["recipient_closed", ...named("code 349", legacy(403, 349, "You cannot send messages to this user."))],
    [
      "recipient_closed",
      ...named("code 150", legacy(403, 150, "You cannot send messages to users who are not following you.")),
    ],
    ["not_permitted", ...named("403 not permitted", problem(403, "Forbidden", "This operation is not permitted."))],
    ["recipient_closed", ...named("code 151", legacy(403, 151, "There was an error sending your message."))],
    ["recipient_closed", ...named("code 476", legacy(403, 476, "Sender is not verified to send message requests"))],
    ["not_permitted", ...named("403 of an unknown kind", problem(403, "Forbidden", "Something new"))],
    ["rejected", ...named("400", problem(400, "Invalid Request", "One or more parameters", `${X}invalid-request`))],
    ["rejected", ...named("400 with a code", coded(400, 25, "Query parameters are missing."))],
    ["rejected", ...named("400 without a word", { status: 400 })],
    [
      "rejected",
      ...named("404", problem(404, "Not Found Error", "Could not find user", `${TWITTER}resource-not-found`)),
    ],
    ["rejected", ...named("403 for a resource", problem(403, "No", "No", `${X}not-authorized-for-resource`))],
  ] as const)("closes the recipient as %s, and the run continues: %s", async (reason, _name, answer) => {
    await using outreach = await openWithX(answer);
    const { run, world, asked, announced, used } = outreach;
    expect(await run()).toMatchObject({ reason: "completed", sent: 1, failed: 1, in_doubt: 0, usage: { sends: 1 } });
    expect(await world.events("DirectMessageFailed")).toMatchObject([
      { data: { reason, recipient: { id: "10" }, frees_quota: true, retry: false } },
    ]);
    expect(announced).toEqual([]);
    expect(used()).toBe(1);
    expect(await run()).toMatchObject({ reason: "completed", sent: 0 });
    expect(asked).toEqual(["10", "11"]);
  });
});

/**
 * X's error codes for a refusal by the recipient's account. The codes never reach the log, so an ordinary test run
 * tries only the first one on both engines.
 */
const CLOSING = [349, 476, 151, 9999].flatMap((code, index) =>
  (index === 0 || isWhole ? LOG_ENGINES : LOG_ENGINES.slice(0, 1)).map((engine) => [code, engine] as const),
);

test.each(CLOSING)(
  "code %i closes any number of recipients, and the run continues: in a log %s",
  async (code, engine) => {
    const refusals = Array.from({ length: REFUSED_IN_A_ROW_MAX + 2 }, () => legacy(403, code));
    await using outreach = await openWithXOn(engine, ...refusals);
    const { run, world, announced } = outreach;
    const ids = refusals.map((_refusal, nth) => String(20 + nth));
    await world.list(...ids);
    expect(await run()).toMatchObject({ reason: "completed", sent: 2, failed: refusals.length });
    const failed = await world.events("DirectMessageFailed");
    expect(new Set(failed.map(({ data }) => `${data.reason} ${data.retry}`))).toEqual(
      new Set(["recipient_closed false"]),
    );
    expect(await world.events("RecipientRetryAllowed")).toEqual([]);
    expect(announced).toEqual([]);
  },
);

describe("an answer that asks to wait", () => {
  const limited = problem(429, "Too Many Requests", "Too Many Requests");
  test.each([
    [10, ...named("429 with an exhausted window", { ...limited, headers: windowOf(0, 10 * MINUTE_MS) })],
    [30, ...named("429 of the day", { ...limited, headers: windowOf(0, 30 * MINUTE_MS, "x-user-limit-24hour") })],
    [
      30,
      ...named("429 of the day, while the endpoint has requests left", {
        ...limited,
        headers: { ...windowOf(9, 10 * MINUTE_MS), ...windowOf(0, 30 * MINUTE_MS, "x-app-limit-24hour") },
      }),
    ],
    [15, ...named("429 without headers", limited)],
    [2, ...named("429 with requests left", { ...limited, headers: windowOf(5, 2 * MINUTE_MS) })],
    [3, ...named("429 with Retry-After", { ...limited, headers: { "retry-after": "180" } })],
    [15, ...named("429 without a word", { status: 429 })],
    [15, ...named("code 88", legacy(429, 88, "Rate limit exceeded"))],
    [15, ...named("code 88 with 400", legacy(400, 88, "Rate limit exceeded"))],
    [15, ...named("429 with a code", coded(429, 429, "Too Many Requests"))],
  ] as const)("pauses the run for %i minutes, which then repeats the message: %s", async (minutes, _name, answer) => {
    await using outreach = await openWithX(answer);
    const { run, world, asked, announced, used } = outreach;
    expect(await run()).toMatchObject({ reason: "completed", sent: 2, failed: 0, in_doubt: 0, usage: { sends: 2 } });
    expect(asked).toEqual(["10", "10", "11"]);
    expect((await world.events("RunPaused"))[0]).toMatchObject({
      data: { reason: "rate_limited", until: new Date(START + minutes * MINUTE_MS).toISOString() },
    });
    expect(await world.events("DirectMessageAttempted")).toHaveLength(2);
    expect(await world.events("DirectMessageFailed", "DirectMessageInDoubt")).toEqual([]);
    expect(announced).toEqual([]);
    expect(used()).toBe(2);
  });
});

describe("an answer with an unknown outcome", () => {
  const DOUBTS = [
    named("500", problem(500, "Internal Server Error", "Something is broken.")),
    named("502 in HTML", { status: 502, headers: { "content-type": "text/html" }, body: "<html>Bad Gateway</html>" }),
    named("503 with code 130", legacy(503, 130, "Over capacity")),
    named("503 with words of another refusal", problem(503, "Forbidden", NO_DM)),
    named("504 without a word", { status: 504 }),
    named("408", { status: 408 }),
    named("no answer", { fault: "silence" }),
    named("a reset", { fault: "reset" }),
    named("201 that breaks off", { fault: "cut" }),
    named("201 without a message's id", { status: 201, body: { data: {} } }),
    named("201 with errors alone", { status: 201, body: { errors: [{ title: "Odd", detail: "odd" }] } }),
    named("201 in HTML", { status: 201, body: "<html>" }),
    named("a redirect", { status: 307, headers: { location: "/elsewhere" }, body: "" }),
    named(
      "403 duplicate",
      problem(403, "Forbidden", "You are not allowed to create a message with duplicate content."),
    ),
    named("code 187", legacy(403, 187, "Status is a duplicate.")),
  ] as const;

  test.each(DOUBTS)("is settled as sent if the message arrived: %s", async (_name, answer) => {
    await using outreach = await openWithX({ ...answer, delivered: true });
    const { run, world, asked, announced, used } = outreach;
    expect(await run()).toMatchObject({ reason: "completed", sent: 2, failed: 0, in_doubt: 0, usage: { sends: 2 } });
    expect(asked).toEqual(["10", "11"]);
    expect(await world.events("DirectMessageInDoubt")).toMatchObject([{ data: { recipient: { id: "10" } } }]);
    const sent = await world.events("DirectMessageSent");
    expect(sent.map(({ data }) => [data.recipient.id, data.settled_by, data.message_id])).toEqual([
      ["11", "answer", "501"],
      ["10", "lookup", "500"],
    ]);
    expect(announced).toEqual([]);
    expect(used()).toBe(2);
  });

  test.each(DOUBTS)("is settled as failed if the message did not arrive: %s", async (_name, answer) => {
    await using outreach = await openWithX(answer);
    const { run, world, asked, used } = outreach;
    expect(await run()).toMatchObject({ reason: "completed", sent: 1, failed: 1, in_doubt: 0 });
    expect(await world.events("DirectMessageInDoubt")).toMatchObject([{ data: { recipient: { id: "10" } } }]);
    expect(await world.events("DirectMessageFailed")).toMatchObject([
      { data: { reason: "not_delivered", recipient: { id: "10" }, frees_quota: false, retry: false } },
    ]);
    expect(used()).toBe(2);
    await run();
    expect(asked).toEqual(["10", "11"]);
  });
});

test("a 201 with errors and a message id counts as sent", async () => {
  const body = { data: { dm_event_id: "77" }, errors: [{ title: "Odd", detail: "odd", type: `${X}odd` }] };
  await using outreach = await openWithX({ status: 201, body, delivered: true });
  expect(await outreach.run()).toMatchObject({ reason: "completed", sent: 2, failed: 0, in_doubt: 0 });
  expect((await outreach.world.events("DirectMessageSent"))[0]).toMatchObject({
    data: { recipient: { id: "10" }, message_id: "77", settled_by: "answer" },
  });
  expect(await outreach.world.events("DirectMessageInDoubt")).toEqual([]);
});
