// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { classifyAnswer } from "../../src/networks/classify-answer.ts";
import { metaAnswers } from "../../src/networks/meta/meta-ads-channel.ts";
import type { DispatchResult } from "../../src/networks/network.ts";
import { answer } from "../harness/in-process/local-test-servers.ts";

type Verdict = "delivered" | "retryable" | "refused: channel" | "refused: dispatch" | "in_doubt" | "skipped";

function verdictOf(result: DispatchResult): Verdict {
  if (result.outcome !== "refused") return result.outcome;
  return result.channel ? "refused: channel" : "refused: dispatch";
}

const error = (code: number, more: object = {}) => ({
  error: { message: "secret words", type: "OAuthException", code, ...more },
});

test.each<[number, unknown, Verdict]>([
  [200, { events_received: 1, messages: [], fbtrace_id: "A1b" }, "delivered"],
  [200, { events_received: 3 }, "delivered"],
  [200, { events_received: 0, messages: [] }, "retryable"],
  [200, {}, "retryable"],
  [200, "<html>", "retryable"],
  [200, error(190), "refused: channel"],
  [204, "", "retryable"],
  [304, "", "retryable"],
  [400, error(1), "retryable"],
  [400, error(2), "retryable"],
  [400, error(4), "retryable"],
  [400, error(17), "retryable"],
  [400, error(613), "retryable"],
  [400, error(80_000), "retryable"],
  [400, error(80_004), "retryable"],
  [400, error(80_014), "retryable"],
  [400, error(80_015), "refused: dispatch"],
  [400, error(100, { is_transient: true }), "retryable"],
  [400, error(100), "refused: dispatch"],
  [400, error(100, { error_subcode: 2_804_019 }), "refused: dispatch"],
  [400, error(100, { error_subcode: 33 }), "refused: channel"],
  [400, error(190), "refused: channel"],
  [400, error(190, { error_subcode: 463 }), "refused: channel"],
  [401, error(190, { error_subcode: 467 }), "refused: channel"],
  [403, error(10), "refused: channel"],
  [403, error(200), "refused: channel"],
  [403, error(299), "refused: channel"],
  [400, error(368), "refused: channel"],
  [400, "", "refused: dispatch"],
  [400, '{"error":"text"}', "refused: dispatch"],
  [400, '{"error":{"code":"190"}}', "refused: dispatch"],
  [401, "", "refused: channel"],
  [403, "<html>", "refused: channel"],
  [404, "", "refused: channel"],
  [408, "", "retryable"],
  [413, "", "refused: dispatch"],
  [429, "", "retryable"],
  [429, error(4), "retryable"],
  [500, error(100), "retryable"],
  [502, "<html>", "retryable"],
  [503, "", "retryable"],
])("Meta's answer %i %j is classified as %s", (status, body, verdict) => {
  const result = classifyAnswer(answer(status, body), metaAnswers(), true);
  expect(verdictOf(result)).toBe(verdict);
  expect(JSON.stringify(result)).not.toContain("secret words");
});

test("the result has Meta's trace id", () => {
  expect(classifyAnswer(answer(200, { events_received: 1, fbtrace_id: "A1b" }), metaAnswers(), true)).toEqual({
    outcome: "delivered",
    status: 200,
    networkId: "A1b",
  });
});

test("the result has Meta's error codes and the requested pause", () => {
  expect(
    classifyAnswer(answer(400, error(80_004, { error_subcode: 12 }), { "retry-after": "7" }), metaAnswers(), true),
  ).toEqual({
    outcome: "retryable",
    status: 400,
    detail: "Meta answered 400, error 80004/12",
    retryAfterMs: 7000,
  });
});

test.each<[Record<string, string>, number | undefined]>([
  [{}, undefined],
  [{ "x-app-usage": '{"call_count":94,"total_time":94,"total_cputime":94}' }, undefined],
  [{ "x-app-usage": '{"call_count":95,"total_time":1,"total_cputime":1}' }, 60_000],
  [{ "x-app-usage": '{"call_count":1,"total_time":96}' }, 60_000],
  [{ "x-app-usage": '{"total_cputime":100}' }, 60_000],
  [{ "x-app-usage": "95" }, undefined],
  [{ "x-app-usage": "{" }, undefined],
  [
    {
      "x-business-use-case-usage":
        '{"12":[{"type":"ads_management","call_count":95,"total_cputime":1,"total_time":1}]}',
    },
    60_000,
  ],
  [
    {
      "x-app-usage": '{"call_count":99}',
      "x-business-use-case-usage":
        '{"12":[{"call_count":100,"estimated_time_to_regain_access":0},{"estimated_time_to_regain_access":19}]}',
    },
    19 * 60_000,
  ],
  [{ "x-business-use-case-usage": '{"12":[{"estimated_time_to_regain_access":600}]}' }, 600 * 60_000],
])("the usage headers %j pause for %p ms", (headers, pauseMs) => {
  const pauseAfter = (status: number, body: object): unknown => {
    const result = classifyAnswer(answer(status, body, headers), metaAnswers(), true);
    return "pauseMs" in result ? result.pauseMs : "retryAfterMs" in result ? result.retryAfterMs : undefined;
  };
  expect(pauseAfter(200, { events_received: 1 })).toBe(pauseMs);
  expect(pauseAfter(500, error(2))).toBe(pauseMs);
  expect(pauseAfter(400, error(80_004))).toBe(pauseMs ?? 60_000);
  expect(pauseAfter(400, error(100))).toBeUndefined();
});

test("the longer of two requested pauses applies", () => {
  const regain = '{"12":[{"estimated_time_to_regain_access":2}]}';
  for (const [retryAfter, pauseMs] of [
    ["7", 120_000],
    ["300", 300_000],
  ] as const) {
    const headers = { "retry-after": retryAfter, "x-business-use-case-usage": regain };
    expect(classifyAnswer(answer(400, error(80_004), headers), metaAnswers(), true)).toMatchObject({
      retryAfterMs: pauseMs,
    });
  }
});
