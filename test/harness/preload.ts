/** Test runs load this file first. It sets up what all harnesses need. */
import { setDefaultTimeout } from "bun:test";
import { useTemporaryFolder } from "./temporary-folder.ts";

/**
 * Time limit of a test in ms, so long that only tests that hang reach it. On a busy machine tests are slow, and one
 * that is cut off would disturb the following ones.
 */
setDefaultTimeout(Number(process.env["TEST_TIMEOUT_MS"] ?? 1_200_000));

useTemporaryFolder();

/** Hosts that tests may call. Any other call is a defect of the test, so it throws. */
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

const realFetch = globalThis.fetch;

function guardedFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const url = new URL(input instanceof Request ? input.url : input);
  // Names that never resolve are allowed, because tests of DNS faults need a lookup that fails.
  if (!LOOPBACK.test(url.hostname) && !url.hostname.endsWith(".invalid")) {
    throw new Error(`a test tried to reach ${url.host}: only loopback is allowed`);
  }
  return realFetch(input, init);
}

globalThis.fetch = Object.assign(guardedFetch, { preconnect: realFetch.preconnect });

const collectGarbage = Bun.gc;

/**
 * Ignores requests to collect garbage soon, which Elysia makes for each new app. The test processes create thousands of
 * apps, and each collection goes through all of their memory.
 */
Bun.gc = (isSynchronous = false) => (isSynchronous ? collectGarbage(true) : 0);
