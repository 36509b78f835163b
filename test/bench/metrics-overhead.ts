import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { atLeast, compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench";
import { CLIENT, postClicks } from "./post-clicks.ts";
import { startUnchanged, startWithout, type Server } from "./start-service-process.ts";

/** Interval of the scrapes in ms. Prometheus scrapes 15 times less often by default. */
const SCRAPE_MS = 1_000;

/**
 * Measures how many clicks a second a service accepts while it counts metrics and a client reads /metrics. Compares
 * this with the same service without metrics.
 */
export const metrics: Bench = async (options) => {
  const seconds = options.quick ? 2 : 4;
  await using counting = await startUnchanged(join(options.directory, "counting.sqlite"));
  await using plain = await startWithout("metrics", join(options.directory, "plain.sqlite"));
  const { ours, without } = await interleave(roundsOf(options), {
    without: () => postClicks(plain.url, seconds),
    ours: () => whileScraping(counting, () => postClicks(counting.url, seconds)),
  });
  options.note(`the client is ${CLIENT}; /metrics is asked for every second`);
  const rates = [ours, without].map((loads) => loads.map(({ perSecond }) => perSecond)) as [number[], number[]];
  return [compare("intake with metrics; limit: without", "/s", ...rates, atLeast(0.97))];
};

async function whileScraping<Result>({ url }: Server, work: () => Promise<Result>): Promise<Result> {
  const done = new AbortController();
  const scraping = (async () => {
    while (!done.signal.aborted) {
      const { status } = await fetch(`${url}/metrics`);
      if (status !== 200) throw new Error(`/metrics answered ${status}`);
      await wait(SCRAPE_MS, undefined, { signal: done.signal }).catch(() => {});
    }
  })();
  try {
    return await work();
  } finally {
    done.abort();
    await scraping;
  }
}
