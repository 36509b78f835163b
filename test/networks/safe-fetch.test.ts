// These tests run parts of the service inside the test process.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  ANSWER_BYTES_MAX,
  createSafeFetch,
  EXPECTED_BYTES_MAX,
  type SafeRequest,
  NetworkFault,
  type NetworkFaultKind,
} from "../../src/networks/safe-fetch.ts";
import { CLIENTS, openBunClient, type Client } from "./bun-and-deno-clients.ts";
import { selfSigned } from "./self-signed.ts";
import { deadUrl, serve, serveRaw } from "../harness/in-process/local-test-servers.ts";

const CANARY = "canary-5f3a9c";
const bun = openBunClient();
/** Time limit of calls that the server answers, so long that no machine is too busy to meet it. */
const TIMEOUT_MS = 60_000;

async function faultOf(client: Client, url: string, request: Partial<SafeRequest> = {}): Promise<NetworkFault> {
  const call = client.safeFetch([url])(`${url}/bot${CANARY}/x`, {
    method: "POST",
    headers: { authorization: `Bearer ${CANARY}` },
    body: CANARY,
    timeoutMs: TIMEOUT_MS,
    ...request,
  });
  const fault: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(fault instanceof NetworkFault)) throw new Error("the call should have failed with a NetworkFault");
  expect(Bun.inspect(fault, { depth: 10 })).not.toContain(CANARY);
  expect(fault.cause).toBeUndefined();
  return fault;
}

function expectFault(fault: NetworkFault, kind: NetworkFaultKind, certainlyNotSent: boolean): void {
  expect([fault.kind, fault.certainlyNotSent]).toEqual([kind, certainlyNotSent]);
}

describe.each(CLIENTS)("on %s", (runtime, open) => {
  let client: Client;
  beforeAll(() => void (client = open()));
  afterAll(() => client[Symbol.asyncDispose]());

  test("an answer comes back with status, headers and text", async () => {
    await using server = serve((seen) => new Response(seen.body, { status: 418, headers: { "x-kind": "teapot" } }));
    const answer = await client.safeFetch([server.url])(`${server.url}/tea`, {
      method: "POST",
      body: "ä",
      timeoutMs: TIMEOUT_MS,
    });
    expect([answer.status, answer.text, answer.truncated]).toEqual([418, "ä", false]);
    expect(answer.headers.get("x-kind")).toBe("teapot");
  });

  test("an answer without a body is empty, not truncated", async () => {
    await using server = serve(() => new Response(null, { status: 204 }));
    const answer = await client.safeFetch([server.url])(server.url, { method: "POST", timeoutMs: TIMEOUT_MS });
    expect([answer.status, answer.text, answer.truncated]).toEqual([204, "", false]);
  });

  test("a refused connection is certain non-delivery", async () => {
    expectFault(await faultOf(client, await deadUrl()), "refused", true);
  });

  test("a name that does not resolve is certain non-delivery", async () => {
    expectFault(await faultOf(client, "http://reachlog-test.invalid"), "dns", true);
  });

  test.each(["reset", "close"])("a connection ended by %s after the request leaves delivery unknown", async (end) => {
    await using server = await serveRaw((socket) => (end === "reset" ? socket.resetAndDestroy() : socket.end()));
    expectFault(await faultOf(client, server.url), "reset", false);
    expect(server.received()).toBeGreaterThan(0);
  });

  test("a call to a silent server ends at the deadline, delivery unknown", async () => {
    await using server = await serveRaw(() => undefined);
    expectFault(await faultOf(client, server.url, { timeoutMs: 50 }), "timeout", false);
  });

  test("informational answers do not extend the deadline", async () => {
    await using server = await serveRaw((socket) => socket.write("HTTP/1.1 103 Early Hints\r\n\r\n"));
    expectFault(await faultOf(client, server.url, { timeoutMs: 50 }), "timeout", false);
  });

  test.each([301, 302, 303, 307, 308])("a %i redirect is not followed", async (status) => {
    await using target = serve(() => new Response("leaked"));
    await using server = serve(() => new Response(null, { status, headers: { location: `${target.url}/` } }));
    const fault = await faultOf(client, server.url);
    expectFault(fault, "redirect", false);
    expect(target.requests).toEqual([]);
  });

  test("a redirect within the allowed origin is not followed either", async () => {
    await using server = serve(() => new Response(null, { status: 307, headers: { location: "/again" } }));
    expectFault(await faultOf(client, server.url), "redirect", false);
    expect(server.requests).toHaveLength(1);
  });

  test.each([
    ["another protocol", "SSH-2.0-OpenSSH_9.7\r\n\r\n"],
    ["a negative length", "HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nhi"],
    ["an upgrade", "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"],
  ])("%s is an invalid answer", async (_name, bytes) => {
    await using server = await serveRaw((socket) => socket.end(bytes));
    expectFault(await faultOf(client, server.url), "invalid", false);
  });

  test("a server that does not speak TLS is a TLS fault", async () => {
    await using server = await serveRaw((socket) => socket.end("HTTP/1.1 200 OK\r\n\r\n"));
    expectFault(await faultOf(client, server.url.replace("http:", "https:")), "tls", false);
  });

  const HOUR_MS = 3_600_000;

  test.each([
    ["no authority signed", "127.0.0.1", HOUR_MS, false],
    ["has expired", "127.0.0.1", -HOUR_MS, true],
    ["is for another address", "127.0.0.2", HOUR_MS, true],
  ])("a certificate that %s is certain non-delivery", async (_name, address, leftMs, trusted) => {
    const identity = selfSigned(address, Date.now() + leftMs);
    await using server = serve(() => new Response("ok"), { tls: identity });
    const call = client.safeFetch([server.url], trusted ? identity.cert : undefined);
    const fault: unknown = await call(server.url, { method: "POST", body: CANARY, timeoutMs: TIMEOUT_MS }).catch(
      (thrown: unknown) => thrown,
    );
    expectFault(fault as NetworkFault, "certificate", true);
    expect(server.requests).toEqual([]);
  });

  test("a trusted certificate is accepted", async () => {
    const identity = selfSigned("127.0.0.1", Date.now() + HOUR_MS);
    await using server = serve(() => new Response("ok"), { tls: identity });
    const call = client.safeFetch([server.url], identity.cert);
    expect((await call(server.url, { method: "POST", timeoutMs: TIMEOUT_MS })).text).toBe("ok");
  });

  test.each([
    ["a cut length", "content-length: 50\r\n\r\nokay"],
    ["a cut chunk", "transfer-encoding: chunked\r\n\r\n4\r\nokay\r\n"],
  ])("an answer with %s keeps its status and the received part", async (_name, rest) => {
    await using server = await serveRaw((socket) => socket.end(`HTTP/1.1 201 Created\r\n${rest}`));
    const answer = await client.safeFetch([server.url])(server.url, { method: "POST", timeoutMs: TIMEOUT_MS });
    expect([answer.status, answer.truncated]).toEqual([201, true]);
    expect("okay").toStartWith(answer.text);
  });

  /** Bytes of a body that arrives one byte every 5 ms: the whole body would take hours. */
  const DRIPS = 5_000_000;
  /**
   * Time limit in ms of a call whose answer has a body that arrives one byte every 5 ms. The limit is long enough for
   * the answer's status to arrive on a busy machine.
   */
  const DRIP_MS = 1_000;

  test("a slow body ends at the deadline and keeps the status", async () => {
    await using server = await serveRaw((socket) => {
      socket.write(`HTTP/1.1 403 Forbidden\r\ncontent-length: ${DRIPS}\r\n\r\n`);
      const drip = setInterval(() => socket.write("."), 5);
      socket.on("close", () => clearInterval(drip));
    });
    const answer = await client.safeFetch([server.url])(server.url, { method: "POST", timeoutMs: DRIP_MS });
    expect([answer.status, answer.truncated]).toEqual([403, true]);
    expect(answer.text.length).toBeLessThan(DRIPS);
  });

  test("an answer with a broken encoding keeps its status", async () => {
    await using server = serve(() => new Response("no gzip", { headers: { "content-encoding": "gzip" } }));
    const answer = await client.safeFetch([server.url])(server.url, { method: "POST", timeoutMs: TIMEOUT_MS });
    expect([answer.status, answer.truncated]).toEqual([200, true]);
  });

  test("an endless body is cut at the limit", async () => {
    const pull = (controller: ReadableStreamDefaultController) => controller.enqueue(new Uint8Array(16_384).fill(97));
    await using server = serve(() => new Response(new ReadableStream({ pull })));
    const answer = await client.safeFetch([server.url])(server.url, { method: "POST", timeoutMs: TIMEOUT_MS });
    expect([answer.status, answer.text.length, answer.truncated]).toEqual([200, ANSWER_BYTES_MAX, true]);
  });

  test("a false content-length beside chunks does not change the limit", async () => {
    const chunk = `4000\r\n${"a".repeat(0x4000)}\r\n`;
    await using server = await serveRaw((socket) =>
      socket.end(
        `HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n${chunk.repeat(8)}0\r\n\r\n`,
      ),
    );
    const call = client.safeFetch([server.url])(server.url, { method: "POST", timeoutMs: TIMEOUT_MS });
    const end = await call.catch((fault: NetworkFault) => fault);
    // The parser of Bun or Deno may also refuse an answer with a false content-length beside chunks. The client then
    // throws a NetworkFault of the kind `invalid`.
    if (end instanceof NetworkFault) expectFault(end, "invalid", false);
    else expect([end.text.length, end.truncated]).toEqual([ANSWER_BYTES_MAX, true]);
  });

  test("a gzip bomb of 200 MB is cut at the limit", async () => {
    const bomb = Bun.gzipSync(new Uint8Array(200 * 1024 * 1024));
    await using server = serve(() => new Response(bomb, { headers: { "content-encoding": "gzip" } }));
    const answer = await client.safeFetch([server.url])(server.url, { method: "POST", timeoutMs: TIMEOUT_MS });
    expect([answer.text.length, answer.truncated]).toEqual([ANSWER_BYTES_MAX, true]);
  });

  test("a caller can raise the limit up to a fixed bound", async () => {
    const bomb = Bun.gzipSync(new Uint8Array(40 * 1024 * 1024));
    await using server = serve(() => new Response(bomb, { headers: { "content-encoding": "gzip" } }));
    for (const [answerBytesMax, kept] of [
      [1_000_000, 1_000_000],
      [Number.MAX_SAFE_INTEGER, EXPECTED_BYTES_MAX],
    ] as const) {
      const request = { method: "GET", timeoutMs: TIMEOUT_MS, answerBytesMax };
      const answer = await client.safeFetch([server.url])(server.url, request);
      expect([answer.text.length, answer.truncated]).toEqual([kept, true]);
    }
  });

  test("a body of exactly the limit is not cut", async () => {
    await using server = serve(() => new Response("a".repeat(ANSWER_BYTES_MAX)));
    const answer = await client.safeFetch([server.url])(server.url, { method: "POST", timeoutMs: TIMEOUT_MS });
    expect([answer.text.length, answer.truncated]).toEqual([ANSWER_BYTES_MAX, false]);
  });

  test("an invalid header is refused before any request", async () => {
    await using server = serve(() => new Response("ok"));
    expectFault(
      await faultOf(client, server.url, { headers: { authorization: `Bearer ${CANARY}\r\nx: y` } }),
      "forbidden",
      true,
    );
    expect(server.requests).toEqual([]);
  });

  test("a POST on a reused connection that dies is not sent twice", async () => {
    let requests = 0;
    await using server = await serveRaw((socket) => {
      requests++;
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
      socket.once("data", () => {
        requests++;
        socket.resetAndDestroy();
      });
    });
    const ends = [];
    for (const body of ["one", "two"]) {
      const call = client.safeFetch([server.url])(server.url, { method: "POST", body, timeoutMs: TIMEOUT_MS });
      ends.push(await call.catch((fault: NetworkFault) => fault));
    }
    // On Bun, the second request reuses a connection that the server has closed. Other runtimes open a new connection
    // for each request.
    if (runtime === "Bun") expectFault(ends[1] as NetworkFault, "reset", false);
    else expect(ends).toEqual([expect.objectContaining({ text: "ok" }), expect.objectContaining({ text: "ok" })]);
    expect(requests).toBe(2);
  });

  test("a call aborted in progress leaves delivery unknown", async () => {
    const caller = new AbortController();
    await using server = await serveRaw(() => caller.abort(new Error("shutting down")));
    expectFault(await faultOf(client, server.url, { signal: caller.signal }), "aborted", false);
  });
});

test("the body beyond the limit is cancelled before the call returns", async () => {
  let hungUp = false;
  const body = new ReadableStream({
    pull: (controller) => controller.enqueue(new Uint8Array(16_384)),
    cancel: () => void (hungUp = true),
  });
  const safeFetch = createSafeFetch({ allowedOrigins: ["https://a.example"], fetch: async () => new Response(body) });
  await safeFetch("https://a.example/", { method: "POST", timeoutMs: TIMEOUT_MS });
  expect(hungUp).toBe(true);
});

test.each([
  "https://elsewhere.example/x",
  "http://127.0.0.1:1/x",
  "https://allowed.example:8443/x",
  "http://allowed.example/x",
  "https://allowed.example@elsewhere.example/x",
  "file:///etc/hostname",
  "data:text/plain,hello",
  "blob:https://allowed.example/1",
  "not a url",
])("%s is refused before any request", async (url) => {
  const calls: string[] = [];
  const safeFetch = createSafeFetch({
    allowedOrigins: ["https://allowed.example/some/path"],
    fetch: async (called) => {
      calls.push(called);
      return new Response();
    },
  });
  const fault: unknown = await safeFetch(url, { method: "POST", timeoutMs: TIMEOUT_MS }).catch(
    (thrown: unknown) => thrown,
  );
  expect(fault).toBeInstanceOf(NetworkFault);
  expectFault(fault as NetworkFault, "forbidden", true);
  expect(calls).toEqual([]);
});

test.each([0, -1, Number.NaN])("a time-out of %p ms is certain non-delivery", async (timeoutMs) => {
  await using server = serve(() => new Response("ok"));
  expectFault(await faultOf(bun, server.url, { timeoutMs }), "timeout", true);
  expect(server.requests).toEqual([]);
});

test("a call aborted before it starts is certain non-delivery", async () => {
  expectFault(await faultOf(bun, "http://127.0.0.1:1", { signal: AbortSignal.abort() }), "aborted", true);
});

test("an answer without a Date header gets its arrival time; others keep theirs", async () => {
  const arrival = "Wed, 21 Oct 2026 07:28:00 GMT";
  const headers = { "retry-after": "Wed, 21 Oct 2026 09:28:00 GMT" };
  const answers = [{}, { date: "Wed, 21 Oct 2026 07:00:00 GMT" }].map(
    (more) => new Response("", { headers: { ...headers, ...more } }),
  );
  const safeFetch = createSafeFetch({
    allowedOrigins: ["http://127.0.0.1:1"],
    fetch: () => Promise.resolve(answers.shift() ?? Response.error()),
    clock: () => Date.parse(arrival) + 999,
  });
  const dates = [];
  for (let call = 0; call < 2; call++) {
    const answer = await safeFetch("http://127.0.0.1:1/", { method: "GET", timeoutMs: TIMEOUT_MS });
    expect(answer.headers.get("retry-after")).toBe(headers["retry-after"]);
    dates.push(answer.headers.get("date"));
  }
  expect(dates).toEqual([arrival, "Wed, 21 Oct 2026 07:00:00 GMT"]);
});
