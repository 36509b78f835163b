// On no harness.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { postJson } from "./client.ts";

describe("faults look to a client as they do in the field", () => {
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
  /** Makes the client give up once its request has been received and `delivered` messages have arrived. */
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
  /** The status, or the client's error. */
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
    // A client that was cut off has sent its POST only once.
    expect(sandbox.tally.slack.requests).toBe(2);
  });

  test.each(["timeout_before", "reset_after_delivery"] as const)(
    "%s on a connection that was used before",
    async (kind) => {
      expect(await seen(post())).toBe(200);
      sandbox.faults.add({ network: "slack", kind, count: 1 });
      expect(await seen(post(briefly()))).not.toBe(200);
      expect(sandbox.tally.slack).toEqual({ requests: 2, answers: { 200: 1 } });
    },
  );

  test("a slow body outlasts the client", async () => {
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
  ] as const)("all off ends the wait that %s makes, without an answer", async (kind, expected, delivered) => {
    sandbox.faults.add({ network: "slack", kind });
    const waiting = seen(post());
    while (sandbox.tally.slack.requests === 0 || arrived() < delivered) await Bun.sleep(1);
    await control("all-off");
    expect(await waiting).toBe(expected);
    expect(arrived()).toBe(delivered);
    expect(await seen(post())).toBe(200);
  });

  test("all off ends a slow body with all of it", async () => {
    sandbox.faults.add({ network: "slack", kind: "slow_body" });
    const answer = await post();
    await control("all-off");
    expect(await answer.text()).toBe("ok");
  });

  test("a fault that is switched off alone ends its own waits, and no others", async () => {
    sandbox.faults.add({ network: "slack", kind: "timeout_before" });
    const waiting = seen(post());
    while (sandbox.tally.slack.requests === 0) await Bun.sleep(1);
    await control("faults/clear?network=telegram");
    await control("faults/clear?network=slack&kind=429");
    expect(sandbox.faults.list()).toHaveLength(1);
    await control("faults/clear?network=slack&kind=timeout_before");
    expect(await waiting).toBe("ECONNRESET");
  });

  test("all off gives back limits that were used up or made smaller, and keeps what arrived", async () => {
    await control("limits", { x: { lateCommitMs: 60_000 }, slack: 1 });
    expect([await seen(post()), await seen(post())]).toEqual([200, 429]);
    sandbox.line.quota = 0;
    await control("all-off");
    expect([await seen(post()), await seen(post())]).toEqual([200, 200]);
    expect(arrived()).toBe(3);
    expect([sandbox.x.limits.lateCommitMs, sandbox.slack.limit, sandbox.line.quota]).toEqual([0, 5, Infinity]);
  });

  test("a huge body goes on for as long as one reads", async () => {
    sandbox.faults.add({ network: "slack", kind: "huge_body", count: 1 });
    const reader = (await post()).body?.getReader();
    let bytes = 0;
    while (bytes < 10_000_000) bytes += (await reader?.read())?.value?.length ?? Number.NaN;
    await reader?.cancel();
    expect(await seen(post())).toBe(200);
  });

  test("a body that is cut off resets the connection; broken JSON does not parse", async () => {
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

  test("a redirect would take the body elsewhere, and each caller that follows it is counted", async () => {
    sandbox.faults.add({ network: "slack", kind: "redirect", count: 2 });
    expect(await seen(post({ redirect: "manual" }))).toBe(307);
    expect(sandbox.tally.slack.requests).toBe(1);
    expect(await seen(post())).toBe(404);
    expect(sandbox.tally.slack.answers).toEqual({ 307: 2, 404: 1 });
    expect(arrived()).toBe(0);
  });

  test("each network words its own refusals", async () => {
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

  test("over HTTP: switched on and off, counted down, only for the paths they name", async () => {
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
    await fetch(`${board}?network=telegram`, { method: "DELETE" });
    expect(await seen(post())).toBe(500);
    await fetch(board, { method: "DELETE" });
    expect(await seen(post())).toBe(200);
    expect(() => sandbox.faults.add({ network: "meta", kind: "bot_blocked" })).toThrow(RangeError);
  });
});
