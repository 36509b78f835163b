// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import type { DispatchResult } from "../../../src/networks/network.ts";
import { classifyAnswer } from "../../../src/networks/classify-answer.ts";
import { createTeamsChannel, TEAMS_ANSWERS, teamsMessage } from "../../../src/networks/chat/teams.ts";
import { renderTeams } from "../../../sandbox/teams.ts";
import { secret } from "../../../src/platform/secret.ts";
import { MESSAGE, NOW } from "../sample-dispatches.ts";
import { answer, deadUrl, safeFetchTo, serve } from "../../harness/in-process/local-test-servers.ts";

const OPTIONS = { timeoutMs: 60_000, now: NOW };
const PATH = "/workflows/f10/triggers/manual/paths/invoke";

function teamsAt(url: string) {
  const webhookUrl = secret(`${url}${PATH}?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=secret`);
  return createTeamsChannel({ webhookUrl, safeFetch: safeFetchTo(url) });
}

const failed = (code: string) => ({ error: { code, message: "the secret workflow" } });
const RUN = { "x-ms-workflow-run-id": "08585287554177334956CU00" };

test.each<[number, object | string, Record<string, string>, DispatchResult["outcome"] | "stopped"]>([
  [202, "", {}, "delivered"],
  [200, "", RUN, "delivered"],
  // This answer is a page of a proxy or gateway.
  [200, "<html>", {}, "in_doubt"],
  [200, "1", {}, "in_doubt"],
  [204, "", {}, "in_doubt"],
  [400, failed("TriggerInputSchemaMismatch"), {}, "refused"],
  [400, failed("WorkflowTriggerIsNotEnabled"), {}, "stopped"],
  [400, failed("DirectApiInvalidAuthorizationScheme"), {}, "stopped"],
  [400, failed("no code: secret"), {}, "refused"],
  [401, failed("DirectApiAuthorizationRequired"), {}, "stopped"],
  [403, "", {}, "stopped"],
  [404, failed("WorkflowNotFound"), {}, "stopped"],
  [405, "", {}, "stopped"],
  [408, "", {}, "in_doubt"],
  [413, failed("RequestEntityTooLarge"), {}, "refused"],
  [429, failed("WorkflowTriggerRequestsThrottled"), {}, "retryable"],
  [500, "", {}, "in_doubt"],
  [502, failed("NoResponse"), RUN, "in_doubt"],
])("a workflow's answer %i %j with headers %j is classified as %s", (status, body, headers, verdict) => {
  const result = classifyAnswer(answer(status, body, headers), TEAMS_ANSWERS);
  expect(result.outcome === "refused" && result.channel ? "stopped" : result.outcome).toBe(verdict);
  expect(JSON.stringify(result)).not.toContain("secret");
});

test("the result has the workflow run's id, and the pause of a 429", () => {
  expect(classifyAnswer(answer(202, "", RUN), TEAMS_ANSWERS)).toEqual({
    outcome: "delivered",
    status: 202,
    networkId: RUN["x-ms-workflow-run-id"],
  });
  expect(classifyAnswer(answer(202, "", { "x-ms-workflow-run-id": "<a b>" }), TEAMS_ANSWERS)).not.toHaveProperty(
    "networkId",
  );
  expect(classifyAnswer(answer(429, "", { "retry-after": "9" }), TEAMS_ANSWERS)).toMatchObject({ retryAfterMs: 9000 });
});

test("a message is posted to the webhook address with its query", async () => {
  await using server = serve(() => new Response(null, { status: 202 }));
  expect((await teamsAt(server.url).send(MESSAGE, OPTIONS)).outcome).toBe("delivered");
  const [request] = server.requests;
  expect([request?.method, request?.path, request?.query.get("sig")]).toEqual(["POST", PATH, "secret"]);
  expect(renderTeams(request?.body ?? "")).toEqual({ text: "hello\nthere", marks: [] });
});

test("the check starts no workflow and says what it cannot test", async () => {
  await using server = serve(() => new Response(null, { status: 404 }));
  expect(await teamsAt(server.url).check(1000)).toEqual({
    ok: true,
    detail: expect.stringContaining("cannot be asked without posting"),
  });
  expect(server.requests.map(({ method, path }) => [method, path])).toEqual([["GET", "/"]]);
  expect((await teamsAt(await deadUrl()).check(1000)).ok).toBe(false);
});

describe("the card", () => {
  const runsOf = (text: string): string[][] => {
    const { attachments } = JSON.parse(teamsMessage(text)) as {
      attachments: { content: { body: { type: string; inlines: { type: string; text: string }[] }[] } }[];
    };
    const blocks = attachments[0]?.content.body ?? [];
    expect(blocks.every(({ type }) => type === "RichTextBlock")).toBe(true);
    expect(blocks.every(({ inlines }) => inlines.every(({ type }) => type === "TextRun"))).toBe(true);
    return blocks.map(({ inlines }) => inlines.map((run) => run.text));
  };

  test("has a block for each line, with a no-break space for an empty one", () => {
    expect(runsOf("a\n\n**b**")).toEqual([["a"], ["\u00a0"], ["**b**"]]);
  });

  test("splits the syntax of a date into separate runs", () => {
    expect(runsOf("{{DATE(2026)}} {{{x")).toEqual([["{", "{DATE(2026)}} {", "{", "{x"]]);
  });

  test("stays within 28,000 bytes and shows the beginning of the text", () => {
    const part = fc.constantFrom("a", "😀", "é", '"', "\\", "\n", "{{DATE(x)}}", "word ".repeat(200));
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 3_000 }), (parts) => {
        const text = `-${parts.join("")}`;
        const body = teamsMessage(text);
        expect(Buffer.byteLength(body)).toBeLessThanOrEqual(28_000);
        const shown = renderTeams(body);
        if ("failure" in shown) throw new Error(shown.failure);
        expect(shown.marks).toEqual([]);
        const seen = shown.text.replace(/^\u00a0$/gm, "");
        expect(seen.isWellFormed()).toBe(true);
        if (seen !== text) {
          expect(seen).toEndWith("…");
          expect(text).toStartWith(seen.slice(0, -1));
        }
      }),
      { numRuns: 40 },
    );
  });

  test("uses nearly all of the 28,000 bytes for a long text", () => {
    const body = teamsMessage("a".repeat(40_000));
    expect(Buffer.byteLength(body)).toBeGreaterThan(27_990);
    expect(Buffer.byteLength(teamsMessage("é\n".repeat(20_000)))).toBeGreaterThan(27_800);
  });
});
