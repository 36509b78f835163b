/** Loaded before every run of tests: what holds for all of them, whatever harness they are on. */
import { setDefaultTimeout } from "bun:test";
import { useTemporaryFolder } from "./temporary.ts";

/** Only what hangs is cut: a busy machine may take as long as it likes, and what goes on after a cut disturbs others. */
setDefaultTimeout(1_200_000);

useTemporaryFolder();

/** A call to anything but loopback is a defect of the test, so it throws. */
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

const realFetch = globalThis.fetch;

function guardedFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const url = new URL(input instanceof Request ? input.url : input);
  // Names that cannot resolve stay allowed: tests of DNS faults need a lookup that fails.
  if (!LOOPBACK.test(url.hostname) && !url.hostname.endsWith(".invalid")) {
    throw new Error(`a test tried to reach ${url.host}: only loopback is allowed`);
  }
  return realFetch(input, init);
}

globalThis.fetch = Object.assign(guardedFetch, { preconnect: realFetch.preconnect });
