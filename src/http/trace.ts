import { randomBytes } from "node:crypto";

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
  const random = randomBytes(24).toString("hex");
  return `00-${random.slice(0, 32)}-${random.slice(32)}-00`;
}
