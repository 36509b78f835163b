// These tests call the code directly.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { postJson } from "./call-simulated-x.ts";

describe("the sandbox's faults", () => {
  let sandbox: Sandbox;
  beforeEach(async () => {
    sandbox = await startSandbox();
  });
  afterEach(() => sandbox[Symbol.asyncDispose]());

  const post = (init: RequestInit = {}): Promise<Response> =>
    fetch(sandbox.urls.slackWebhook, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"text":"x"}',
      ...init,
    });
  const control = (path: string, body: unknown = {}): Promise<Response> =>
    postJson(`${sandbox.url}/_sandbox/${path}`, body);
  const GIVEN_UP = new DOMException("given up", "TimeoutError");
  /**
   * Returns options for a request. They make its client give up as soon as the sandbox has received the request and
   * `delivered` messages have arrived.
   */
  const briefly = (delivered = 0): RequestInit => {
    const client = new AbortController();
    const before = sandbox.tally.slack.requests;
    const giveUpOnceThere = (): void => {
      if (sandbox.tally.slack.requests > before && arrived() >= delivered) client.abort(GIVEN_UP);
      else setImmediate(giveUpOnceThere);
    };
    giveUpOnceThere();
    return { signal: client.signal };
  };
  const arrived = (): number => sandbox.slack.messages.total;
  /** Resolves with the status of the answer, or with the client's error. */
  const seen = (answer: Promise<unknown>): Promise<unknown> =>
    answer.then(
      (value) => (value instanceof Response ? value.status : value),
      (fault: Error & { code?: string }) => (fault.name === "TimeoutError" ? fault.name : fault.code),
    );

  test.each([
    ["reset_before", "ECONNRESET", 0],
    ["reset_after_delivery", "ECONNRESET", 1],
    ["timeout_before", "TimeoutError", 0],
    ["timeout_after_delivery", "TimeoutError", 1],
    ["500", 500, 0],
    ["502_html", 502, 0],
    ["429", 429, 0],
    ["channel_archived", 410, 0],
    ["action_prohibited", 403, 0],
    ["token_revoked", 404, 0],
  ] as const)("%s: the client sees %p, delivered: %p", async (kind, expected, delivered) => {
    sandbox.faults.add({ network: "slack", kind, count: 1 });
    expect(await seen(post(kind.startsWith("timeout") ? briefly(delivered) : {}))).toBe(expected);
    expect(arrived()).toBe(delivered);
    expect(await seen(post())).toBe(200);
    // The client whose connection was cut did not repeat its POST: there were only two requests.
    expect(sandbox.tally.slack.requests).toBe(2);
  });

  test.each(["timeout_before", "reset_after_delivery"] as const)(
    "%s also works on a reused connection",
    async (kind) => {
      expect(await seen(post())).toBe(200);
      sandbox.faults.add({ network: "slack", kind, count: 1 });
      expect(await seen(post(briefly()))).not.toBe(200);
      expect(sandbox.tally.slack).toEqual({ requests: 2, answers: { 200: 1 } });
    },
  );

  test("slow_body outlasts the client after the message is delivered", async () => {
    sandbox.faults.add({ network: "slack", kind: "slow_body", count: 1 });
    const client = new AbortController();
    const answer = await post({ signal: client.signal });
    expect(answer.status).toBe(200);
    const text = seen(answer.text());
    client.abort(GIVEN_UP);
    expect(await text).toBe("TimeoutError");
    expect(arrived()).toBe(1);
  });

  test.each([
    ["timeout_before", "ECONNRESET", 0],
    ["timeout_after_delivery", "ECONNRESET", 1],
  ] as const)("switching all faults off cuts a request that waits on %s", async (kind, expected, delivered) => {
    sandbox.faults.add({ network: "slack", kind });
    const waiting = seen(post());
    while (sandbox.tally.slack.requests === 0 || arrived() < delivered) await Bun.sleep(1);
    await control("all-off");
    expect(await waiting).toBe(expected);
    expect(arrived()).toBe(delivered);
    expect(await seen(post())).toBe(200);
  });

  test("switching all faults off completes a slow body", async () => {
    sandbox.faults.add({ network: "slack", kind: "slow_body" });
    const answer = await post();
    await control("all-off");
    expect(await answer.text()).toBe("ok");
  });

  test("switching one fault off ends only the requests that wait on it", async () => {
    sandbox.faults.add({ network: "slack", kind: "timeout_before" });
    const waiting = seen(post());
    while (sandbox.tally.slack.requests === 0) await Bun.sleep(1);
    await control("faults/clear?network=telegram");
    await control("faults/clear?network=slack&kind=429");
    expect(sandbox.faults.list()).toHaveLength(1);
    await control("faults/clear?network=slack&kind=timeout_before");
    expect(await waiting).toBe("ECONNRESET");
  });

  test("switching all faults off restores limits and keeps arrived messages", async () => {
    Object.assign(sandbox.x.limits, { lateCommitMs: 60_000 });
    sandbox.slack.limit = 1;
    expect([await seen(post()), await seen(post())]).toEqual([200, 429]);
    sandbox.line.quota = 0;
    await control("all-off");
    expect([await seen(post()), await seen(post())]).toEqual([200, 200]);
    expect(arrived()).toBe(3);
    expect([sandbox.x.limits.lateCommitMs, sandbox.slack.limit, sandbox.line.quota]).toEqual([0, 5, Infinity]);
  });

  test("huge_body continues for as long as the client reads", async () => {
    sandbox.faults.add({ network: "slack", kind: "huge_body", count: 1 });
    const reader = (await post()).body?.getReader();
    let bytes = 0;
    while (bytes < 10_000_000) bytes += (await reader?.read())?.value?.length ?? Number.NaN;
    await reader?.cancel();
    expect(await seen(post())).toBe(200);
  });

  test("cut_body resets the connection, and invalid_json does not parse", async () => {
    const url = `${sandbox.urls.telegram}/bot${sandbox.telegram.botToken}/getMe`;
    sandbox.faults.add({ network: "telegram", kind: "cut_body", count: 1 });
    const cut = await fetch(url);
    expect([cut.status, await seen(cut.text())]).toEqual([200, "ECONNRESET"]);
    sandbox.faults.add({ network: "telegram", kind: "invalid_json", count: 1 });
    const broken = await fetch(url);
    expect(broken.status).toBe(200);
    const text = await broken.text();
    expect(() => JSON.parse(text) as unknown).toThrow(SyntaxError);
  });

  test("redirect answers 307, and each client that follows it is counted", async () => {
    sandbox.faults.add({ network: "slack", kind: "redirect", count: 2 });
    expect(await seen(post({ redirect: "manual" }))).toBe(307);
    expect(sandbox.tally.slack.requests).toBe(1);
    expect(await seen(post())).toBe(404);
    expect(sandbox.tally.slack.answers).toEqual({ 307: 2, 404: 1 });
    expect(arrived()).toBe(0);
  });

  test("refusals are worded as each network words them", async () => {
    for (const network of ["meta", "telegram"] as const) {
      for (const kind of ["429", "500", "502_html", "token_revoked"] as const) {
        sandbox.faults.add({ network, kind, count: 1, retryAfter: 7 });
      }
    }
    const meta = `${sandbox.urls.meta}/v27.0/1`;
    const telegram = `${sandbox.urls.telegram}/bot1:x/getMe`;
    const answered = async (url: string): Promise<unknown> => {
      const answer = await fetch(url);
      return answer.headers.get("content-type") === "application/json" ? answer.json() : answer.status;
    };
    expect(await answered(meta)).toMatchObject({ error: { code: 80_004 } });
    expect(await answered(meta)).toMatchObject({ error: { code: 2, is_transient: true } });
    expect(await answered(meta)).toBe(502);
    expect(await answered(meta)).toMatchObject({ error: { code: 190, error_subcode: 460 } });
    expect(await answered(telegram)).toMatchObject({ error_code: 429, parameters: { retry_after: 7 } });
    expect(await answered(telegram)).toMatchObject({ error_code: 500 });
    expect(await answered(telegram)).toBe(502);
    expect(await answered(telegram)).toMatchObject({ error_code: 401, description: "Unauthorized" });
  });

  test("faults are set over HTTP with a count and a path, and cleared", async () => {
    const board = `${sandbox.url}/_sandbox/faults`;
    for (const nonsense of [
      { network: "slack", kind: "nonsense" },
      { network: "slack", kind: "usage_capped" },
      { network: "nowhere", kind: "500" },
      { network: "slack", kind: "500", count: 0 },
      { network: "slack", kind: "500", retryAfter: "soon" },
    ]) {
      expect((await postJson(board, nonsense)).status).toBe(400);
    }
    await postJson(board, { network: "slack", kind: "500", path: "/elsewhere" });
    expect(await seen(post())).toBe(200);
    await postJson(board, { network: "slack", kind: "500", count: 2 });
    expect([await seen(post()), await seen(post()), await seen(post())]).toEqual([500, 500, 200]);
    await postJson(board, { network: "slack", kind: "500" });
    await control("faults/clear?network=telegram");
    expect(await seen(post())).toBe(500);
    await control("faults/clear");
    expect(await seen(post())).toBe(200);
    expect(() => sandbox.faults.add({ network: "meta", kind: "bot_blocked" })).toThrow(RangeError);
  });
});
