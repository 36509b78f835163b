import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";

describe("faults look to a client as they do in the field", () => {
  let sandbox: Sandbox;
  beforeEach(async () => {
    sandbox = await startSandbox({ port: 0 });
  });
  afterEach(() => sandbox[Symbol.asyncDispose]());

  const post = (timeoutMs = 5_000): Promise<Response> =>
    fetch(`${sandbox.url}/slack${sandbox.slack.path}`, {
      method: "POST",
      body: '{"text":"x"}',
      signal: AbortSignal.timeout(timeoutMs),
    });
  const arrived = (): number => sandbox.slack.messages.total;
  const codeOf = (answer: Promise<Response>): Promise<unknown> =>
    answer.then(
      ({ status }) => status,
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
  ] as const)("%s: the client sees %p, delivered: %p", async (kind, seen, delivered) => {
    sandbox.faults.add({ network: "slack", kind, count: 1 });
    expect(await codeOf(post(kind.startsWith("timeout") ? 300 : 5_000))).toBe(seen);
    expect(arrived()).toBe(delivered);
    expect(await codeOf(post())).toBe(200);
  });

  test("a slow body keeps the client waiting, a huge one never ends, broken JSON does not parse", async () => {
    sandbox.faults.add({ network: "slack", kind: "slow_body", count: 1 });
    const slow = await post(300);
    expect(slow.status).toBe(200);
    expect(slow.text()).rejects.toThrow();

    sandbox.faults.add({ network: "slack", kind: "huge_body", count: 1 });
    const reader = (await post()).body?.getReader();
    let bytes = 0;
    while (bytes < 1_000_000) bytes += (await reader?.read())?.value?.length ?? Number.NaN;
    await reader?.cancel();

    sandbox.faults.add({ network: "telegram", kind: "invalid_json", count: 1 });
    const broken = await fetch(`${sandbox.url}/telegram/bot${sandbox.telegram.botToken}/getMe`);
    expect(broken.json()).rejects.toThrow();
  });

  test("over HTTP: switched on and off, counted down, only for the paths they name", async () => {
    const control = (method: string, body?: unknown): Promise<Response> =>
      fetch(`${sandbox.url}/_sandbox/faults`, {
        method,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    expect((await control("POST", { network: "slack", kind: "nonsense" })).status).toBe(400);
    await control("POST", { network: "slack", kind: "500", path: "/elsewhere" });
    expect((await post()).status).toBe(200);
    await control("POST", { network: "slack", kind: "500", count: 2 });
    expect([(await post()).status, (await post()).status, (await post()).status]).toEqual([500, 500, 200]);
    await control("POST", { network: "slack", kind: "500" });
    await control("DELETE");
    expect((await post()).status).toBe(200);
  });
});
