// These tests run parts of the service inside the test process.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Socket } from "node:net";
import { ANSWER_BYTES_MAX, createSafeFetch, type SafeRequest, NetworkFault } from "../../src/networks/safe-fetch.ts";
import { serve, serveRaw } from "../harness/in-process/local-test-servers.ts";
import { CLIENTS, type Client } from "./bun-and-deno-clients.ts";

/** Deadline of the service's calls to a hostile network, which each call must meet with little memory. */
const TIMEOUT_MS = 500;

/** Deadline of calls that end by themselves, however busy the machine is. */
const PATIENT_MS = 60_000;

/**
 * Maximum growth of the client's memory, in MiB. A call that kept all that it received would far exceed it. Garbage
 * alone does not: it was up to 120 MiB with V8 on a busy machine.
 */
const GROWTH_MIB_MAX = { Bun: 100, Deno: 200 };

const MIB = 1024 * 1024;

const request = (more: Partial<SafeRequest> = {}): SafeRequest => ({
  method: "POST",
  headers: { authorization: "Bearer canary", "x-api-key": "canary" },
  body: "canary",
  timeoutMs: TIMEOUT_MS,
  ...more,
});

/** Returns how a call ended: its status or the kind of its fault. */
async function endOf(client: Client, url: string, more: Partial<SafeRequest> = {}): Promise<number | string> {
  try {
    return (await client.safeFetch([url])(url, request(more))).status;
  } catch (fault) {
    return (fault as NetworkFault).kind;
  }
}

/** Writes continuously, as fast as the client reads. */
function flood(socket: Socket, bytes: Uint8Array | string): void {
  const more = (): void => {
    if (!socket.destroyed) socket.write(bytes, () => setImmediate(more));
  };
  more();
}

async function grownMiB(
  runtime: keyof typeof GROWTH_MIB_MAX,
  client: Client,
  act: () => Promise<unknown>,
): Promise<number> {
  // A client on Deno is a separate process. Collecting this process's garbage would not change its memory.
  if (runtime === "Bun") Bun.gc(true);
  const before = client.residentMiB();
  await act();
  return client.residentMiB() - before;
}

describe.each(CLIENTS)("on %s", (runtime, open) => {
  let client: Client;
  beforeAll(() => void (client = open()));
  afterAll(() => client[Symbol.asyncDispose]());

  test.each([
    ["headers without end", "HTTP/1.1 200 OK\r\n", `x-a: ${"b".repeat(1_000)}\r\n`],
    ["one header without end", "HTTP/1.1 200 OK\r\nx-a: ", "b".repeat(10_000)],
    ["a status line without end", "HTTP/1.1 200 ", "O".repeat(10_000)],
    ["garbage without end", "", Buffer.alloc(10_000, 0xff)],
    ["interim answers without end", "", "HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n"],
    ["a body without end", "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n", "a".repeat(10_000)],
    [
      "chunks without end",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
      `2710\r\n${"a".repeat(10_000)}\r\n`,
    ],
  ])("%s: the call ends in time and uses little memory", async (_what, first, more) => {
    await using server = await serveRaw((socket) => {
      socket.write(first);
      flood(socket, more);
    });
    // Data keeps arriving. If that extended the deadline, this test would never end.
    const grown = await grownMiB(runtime, client, () => Promise.all([1, 2, 3, 4].map(() => endOf(client, server.url))));
    expect(grown).toBeLessThan(GROWTH_MIB_MAX[runtime]);
  });

  test.each([
    [1, runtime === "Bun" ? 200 : "invalid"],
    [4, "invalid"],
  ])("a header of %i MB leaks no memory", async (size, end) => {
    const answer = Buffer.from(`HTTP/1.1 200 OK\r\nx-a: ${"b".repeat(size * MIB)}\r\ncontent-length: 2\r\n\r\nok`);
    await using server = await serveRaw((socket) => void socket.end(answer));
    const ends: (number | string)[] = [];
    const grown = await grownMiB(runtime, client, async () => {
      for (let time = 0; time < 10; time++) ends.push(await endOf(client, server.url, { timeoutMs: PATIENT_MS }));
    });
    expect(new Set(ends)).toEqual(new Set([end]));
    expect(grown).toBeLessThan(GROWTH_MIB_MAX[runtime]);
  });

  test.each(["gzip", "deflate", "br", "zstd"])(
    "a small body that %s expands to 30 MB is cut at the limit",
    async (encoding) => {
      const bomb = pack(encoding, Buffer.alloc(30 * MIB, "a"));
      expect(bomb.length).toBeLessThan(ANSWER_BYTES_MAX);
      await using server = await serveRaw((socket) => {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: ${encoding}\r\ncontent-length: ${bomb.length}\r\n\r\n`);
        socket.end(bomb);
      });
      const { text, truncated } = await client.safeFetch([server.url])(server.url, request({ timeoutMs: PATIENT_MS }));
      expect([text.length, truncated]).toEqual([ANSWER_BYTES_MAX, true]);
    },
  );

  test.each([301, 302, 303, 307, 308])("a %i redirect sends neither credentials nor body anywhere", async (status) => {
    await using thief = serve(() => new Response("thanks"));
    // The first two redirects lead to the `thief` server, which `safeFetch` may call. If these calls still fail, the
    // reason can only be that redirects are refused.
    const places = [
      thief.url,
      `${thief.url}/a`,
      "file:///etc/hostname",
      "data:text/plain,a",
      "//127.0.0.1",
      "http://[::1]:1",
    ];
    for (const location of places) {
      await using server = serve(() => new Response(null, { status, headers: { location } }));
      const call = client.safeFetch([server.url, thief.url])(server.url, request({ timeoutMs: PATIENT_MS }));
      const fault: unknown = await call.catch((thrown: unknown) => thrown);
      expect(fault).toBeInstanceOf(NetworkFault);
      expect(server.requests).toHaveLength(1);
    }
    expect(thief.requests).toEqual([]);
  });

  test.each(["PUT", "PATCH", "DELETE", "HEAD", "post", "TRACE"])(
    "the method %s is refused, because the runtime may send it twice",
    async (method) => {
      await using server = serve(() => new Response("ok"));
      expect(await endOf(client, server.url, { method })).toBe("forbidden");
      expect(server.requests).toEqual([]);
    },
  );

  test.each([
    ["closed in order after the first answer", (socket: Socket) => socket.end()],
    ["closed in order at the second request", (socket: Socket) => void socket.once("data", () => socket.end())],
    ["reset at the second request", (socket: Socket) => void socket.once("data", () => socket.resetAndDestroy())],
    ["silent at the second request", () => undefined],
  ])("no POST arrives twice on a kept-alive connection %s", async (_what, then) => {
    await using server = await serveRaw((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
      then(socket);
    });
    const call = client.safeFetch([server.url]);
    const before = server.received();
    await call(server.url, request({ body: "first" }));
    const first = server.received() - before;
    for (const body of ["second", "third"]) {
      await call(server.url, request({ body })).catch((fault: unknown) => expect(fault).toBeInstanceOf(NetworkFault));
    }
    // The server received the bytes of three requests and not of four, so the runtime repeated none.
    expect(server.received()).toBeLessThan(before + 3.5 * first);
  });
});

function pack(encoding: string, bytes: Buffer): Uint8Array {
  const zlib = process.getBuiltinModule("node:zlib");
  if (encoding === "br") return zlib.brotliCompressSync(bytes);
  if (encoding === "zstd") return zlib.zstdCompressSync(bytes);
  return encoding === "gzip" ? zlib.gzipSync(bytes) : zlib.deflateSync(bytes);
}

test.each([
  "http://127.0.0.1:1",
  "http://127.1",
  "http://2130706433",
  "http://0x7f.1",
  "http://0177.0.0.1",
  "http://[::1]",
  "http://[::ffff:127.0.0.1]",
  "http://[::ffff:7f00:1]",
  "http://localhost",
  "http://localhost.",
  "http://①②⑦.0.0.1",
  "http://127.0.0.1.nip.io",
  "http://169.254.169.254/latest/meta-data",
  "http://metadata.google.internal",
  "http://10.0.0.1",
  "http://[fd00::1]",
  "https://hooks.example.evil.example",
  "https://hooks.example:444",
  "https://hooks.example@127.0.0.1",
  "https://hooks.example\\@127.0.0.1",
  "https://hooks.example#@127.0.0.1:1/",
  "ftp://hooks.example",
  "unix:/var/run/docker.sock",
])("%s never reaches an origin that is not allowed", async (url) => {
  const called: string[] = [];
  const call = createSafeFetch({
    allowedOrigins: ["https://hooks.example/services/T0/B0"],
    fetch: async (to) => {
      called.push(new URL(to).origin);
      return new Response();
    },
  });
  const end: unknown = await call(url, request()).then(
    () => "called",
    (fault: unknown) => (fault as NetworkFault).kind,
  );
  // The URL parser may read a URL of this list as one of the allowed origin, and the call is then made. In this case
  // the request must really go to the allowed origin.
  if (end === "called") expect(called).toEqual(["https://hooks.example"]);
  else expect([end, called]).toEqual(["forbidden", []]);
});
