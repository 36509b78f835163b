import { atLeast, compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench";
import { backlogLog } from "./open-backlog-log.ts";
import { onCopyOf } from "./log-copy.ts";
import { pendingOf } from "./count-and-await-pending-dispatches.ts";
import { CLIENT, postClicks, type LoadResult } from "./post-clicks.ts";
import { startService } from "./start-service-process.ts";
import { networkSettings, startSinks } from "./start-network-sinks.ts";

/**
 * Progress of the backlog on the chat channel while new clicks arrive. Chat and messaging are the slowest channels,
 * because they need a request for each click.
 */
interface Meanwhile {
  readonly settledPerSecond: number;
  /**
   * True if chat had settled the whole backlog before the load of new clicks ended. The figures then also cover a time
   * in which the service had no backlog to drain.
   */
  readonly isOver: boolean;
}

/**
 * Measures durably accepted clicks a second while a backlog drains. Compares them with the same service on the same log
 * that delivers nothing.
 */
export const drainIntake: Bench = async (options) => {
  const clicks = options.quick ? 10_000 : 100_000;
  const seconds = options.quick ? 1 : 4;
  const backlog = await backlogLog(options.directory, clicks);
  await using sinks = await startSinks(options.directory);
  const drained: Meanwhile[] = [];
  const { draining, idle } = await interleave(roundsOf(options), {
    idle: () => onCopyOf(backlog, (log) => loadIdle(log, seconds)),
    draining: () =>
      onCopyOf(backlog, async (log) => {
        const { load, meanwhile } = await loadDraining(log, networkSettings(sinks.url), seconds);
        drained.push(meanwhile);
        return load;
      }),
  });
  const settled = Math.round(Math.min(...drained.map(({ settledPerSecond }) => settledPerSecond)));
  options.note(`the client is ${CLIENT}; ${settled} clicks a second or more were told in chat meanwhile`);
  if (drained.some(({ isOver }) => isOver)) options.note("but in one round the backlog ended before the load");
  const row = (what: string, unit: string, value: (load: LoadResult) => number, bar?: ReturnType<typeof atLeast>) =>
    compare(what, unit, draining.map(value), idle.map(value), bar);
  const what = `drain-intake, durable 202s while ${clicks.toLocaleString("en")} clicks drain; none drains`;
  return [
    row(what, "/s", ({ perSecond }) => perSecond, atLeast(0.7)),
    row("drain-intake, p99", "µs", ({ p99Ms }) => p99Ms * 1000),
  ];
};

/**
 * Posts clicks to a service that delivers nothing, because it has no networks: the backlog stays pending, and new
 * clicks request no dispatch.
 */
async function loadIdle(log: string, seconds: number): Promise<LoadResult> {
  await using service = await startService(log);
  return await postClicks(service.url, seconds);
}

async function loadDraining(log: string, settings: Readonly<Record<string, string>>, seconds: number) {
  await using service = await startService(log, settings);
  const [{ chat: before }, start] = [await pendingOf(service), performance.now()];
  const load = await postClicks(service.url, seconds);
  const [{ chat: after }, tookMs] = [await pendingOf(service), performance.now() - start];
  const settledPerSecond = (before + load.requests - after) / (tookMs / 1000);
  const meanwhile: Meanwhile = { settledPerSecond, isOver: after <= load.requests };
  return { load, meanwhile };
}
