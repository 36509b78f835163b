import { join } from "node:path";
import { atLeast, compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench";
import { CLIENT, postClicks } from "./post-clicks.ts";
import { startUnchanged, startWithout } from "./start-service-process.ts";

/**
 * Measures the intake of a service that could create traces, but whose traces are not collected. Compares it with a
 * service whose tracing is removed.
 */
export const traces: Bench = async (options) => {
  const seconds = options.quick ? 2 : 4;
  await using able = await startUnchanged(join(options.directory, "able.sqlite"));
  await using plain = await startWithout("traces", join(options.directory, "plain.sqlite"));
  const { ours, without } = await interleave(roundsOf(options), {
    without: () => postClicks(plain.url, seconds),
    ours: () => postClicks(able.url, seconds),
  });
  options.note(`the client is ${CLIENT}; no collector is configured`);
  const rates = [ours, without].map((loads) => loads.map(({ perSecond }) => perSecond)) as [number[], number[]];
  return [compare("intake with traces, off; limit: without", "/s", ...rates, atLeast(0.99))];
};
