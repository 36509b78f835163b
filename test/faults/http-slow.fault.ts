import { afterAll } from "bun:test";
import { IN_FLIGHT_MAX } from "../../src/http/access/limit-requests-and-streams.ts";
import { testAttacks, tally, type Attack } from "../http/attacks/attack.ts";
import { openTarget } from "../http/attacks/target.ts";
import { JSON_TYPE, requestBytes } from "../http/wire/raw-request-bytes.ts";
import type { Connection } from "../http/wire/connection.ts";

const target = await openTarget();
afterAll(() => target[Symbol.asyncDispose]());

/**
 * Time limit of the service in ms until a request's headers are complete. The next constant limits the time until the
 * request is complete, or until an idle connection is closed.
 */
const HEADERS_MS_MAX = 15_000;
const BODY_MS_MAX = 35_000;

/**
 * Minimum time in ms that the service must wait for a client, because clients with slow connections must be served too.
 */
const PATIENCE_MS_MIN = 5_000;

/** Number of connections that are idle while others are served. */
const IDLERS = 900;

/** Number of requests whose body never arrives: more than the service answers at the same time. */
const HALVES = IN_FLIGHT_MAX + 100;

interface SlowClient {
  readonly what: string;
  readonly first: string;
  /** Text that the client sends repeatedly after `first`; undefined if it sends nothing more. */
  readonly drip?: string;
  readonly closedMs: number;
}

const POST = `POST /api/notify HTTP/1.1\r\nHost: localhost\r\n${JSON_TYPE}\r\n`;
const HALF = `${POST}Content-Length: 99\r\n\r\n{`;

const CLIENTS: readonly SlowClient[] = [
  { what: "says nothing", first: "", closedMs: HEADERS_MS_MAX },
  { what: "half a line", first: "GET /api/hea", closedMs: HEADERS_MS_MAX },
  { what: "headers without end", first: "GET /api/health HTTP/1.1\r\n", closedMs: HEADERS_MS_MAX },
  { what: "a header a second", first: "GET /api/health HTTP/1.1\r\n", drip: "X-A: b\r\n", closedMs: HEADERS_MS_MAX },
  { what: "a letter a second", first: "GET /api/health HTTP/1.1\r\nX-A: ", drip: "b", closedMs: HEADERS_MS_MAX },
  { what: "a body that does not come", first: HALF, closedMs: BODY_MS_MAX },
  { what: "a byte of a body a second", first: `${POST}Content-Length: 999\r\n\r\n`, drip: " ", closedMs: BODY_MS_MAX },
  {
    what: "a chunk a second",
    first: `${POST}Transfer-Encoding: chunked\r\n\r\n`,
    drip: "1\r\n \r\n",
    closedMs: BODY_MS_MAX,
  },
  {
    what: "a refused body that drips on",
    first: `${POST}Content-Length: 99999\r\n\r\n`,
    drip: " ",
    closedMs: BODY_MS_MAX,
  },
  { what: "nothing after an answer", first: "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", closedMs: BODY_MS_MAX },
];

const DRIP_MS = 1_000;

/** Returns how long the service kept the slow client's connection open, in ms. */
async function endure(connection: Connection, { first, drip }: SlowClient): Promise<number> {
  await connection.write(first);
  const dripping = setInterval(() => void (drip === undefined ? undefined : connection.write(drip)), DRIP_MS);
  try {
    return await connection.closed();
  } finally {
    clearInterval(dripping);
  }
}

const slow: Attack = {
  name: `the service closes ${CLIENTS.length} kinds of slow clients among ${IDLERS} idle connections and ${HALVES} half bodies`,
  expected: `hung up in ${HEADERS_MS_MAX / 1000} s, or ${BODY_MS_MAX / 1000} s with a body; all others served`,
  async run({ open, url, service }) {
    const idlers = await Promise.all(Array.from({ length: IDLERS + HALVES }, () => open()));
    for (const idler of idlers.slice(IDLERS)) await idler.write(HALF);
    const wrong: string[] = [];
    const over = new AbortController();
    const ends = Promise.all(
      CLIENTS.map(async (client) => {
        using connection = await open();
        const ms = await endure(connection, client);
        if (ms > client.closedMs || ms < PATIENCE_MS_MIN) wrong.push(`${client.what}: ${ms.toFixed()} ms`);
        return Math.round(ms / 1000);
      }),
    ).finally(() => over.abort());
    const served: number[] = [];
    let slowestMs = 0;
    while (!over.signal.aborted) {
      const startedAt = performance.now();
      // Requests this document and not the health check, because even an overloaded service answers the health check.
      const answer = await service.get("/openapi.json");
      served.push(answer.status);
      await answer.arrayBuffer();
      slowestMs = Math.max(slowestMs, performance.now() - startedAt);
    }
    const seconds = await ends;
    // Waits until the service has closed the idle connections too.
    await Promise.all(idlers.map((idler) => idler.closed()));
    wrong.push(...served.filter((status) => status !== 200).map(String));
    // Checks that the service answers a new connection as before.
    using after = await open();
    await after.write(requestBytes(url, { path: "/api/health" }));
    if ((await after.answered(1))[0]?.status !== 200) wrong.push("not served afterwards");
    const seen = `seconds ${tally(seconds)}; others ${tally(served)}, slowest ${slowestMs.toFixed()} ms`;
    return { tried: CLIENTS.length + idlers.length, seen, wrong };
  },
};

testAttacks([slow], () => target, 120_000);
