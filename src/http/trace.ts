import { randomFillSync } from "node:crypto";

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** W3C Trace Context, version 00: trace id and parent id must not be all zeros. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The caller's request id where it is one, else a fresh one. */
export function requestId(given: string | null, make: () => string): string {
  return given !== null && REQUEST_ID.test(given) ? given : make();
}

/** The caller's `traceparent` where it is one, else the start of a trace of its own (not sampled). */
export function traceparent(given: string | null): string {
  if (given !== null && TRACEPARENT.test(given)) return given;
  const random = randomHex();
  return `00-${random.slice(0, 32)}-${random.slice(32)}-00`;
}

/** A trace id and a parent id. */
const ID_BYTES = 16 + 8;

/** Asking the system for randomness costs a microsecond, however little is asked for. */
const pool = Buffer.alloc(ID_BYTES * 256);
let used = pool.length;

function randomHex(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += ID_BYTES;
  return pool.toString("hex", used - ID_BYTES, used);
}
