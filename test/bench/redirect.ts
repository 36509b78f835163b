import { join } from "node:path";
import { createEventLog, STREAMS } from "../../src/log/event-log.ts";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { codec, type Event } from "../../events/event-types-and-codec.ts";
import { openSqliteStore } from "eventstore-lite";
import { atMost, compare, interleave, roundsOf, type Bench, processorTimeOf } from "eventstore-lite/bench";
import { followLink, type LoadResult } from "./post-clicks.ts";
import { type Server, startBareRoute, startService } from "./start-service-process.ts";

/** Number of visits in a second: a tenth of what one thread can answer. */
const RATE = 500;

/** Measures how fast the redirect answers. Compares it with the same Elysia route that records nothing. */
export const redirect: Bench = async (options) => {
  const seconds = options.quick ? 2 : 6;
  await using bare = await startBareRoute(options.directory);
  await using before = await serveLink(join(options.directory, "before.sqlite"), "before");
  await using after = await serveLink(join(options.directory, "after.sqlite"), "after");
  const rounds = await interleave(roundsOf(options), {
    bare: () => measure(bare, seconds),
    before: () => measure(before, seconds),
    after: () => measure(after, seconds),
  });
  options.note(`${RATE} visitors a second`);
  const figures = (name: keyof typeof rounds, value: (load: Measured) => number): number[] => rounds[name].map(value);
  return (["before", "after"] as const).flatMap((name) => [
    compare(
      `redirect, click durable ${name} the answer, p99`,
      "µs",
      figures(name, (load) => load.p99Ms * 1000),
      figures("bare", (load) => load.p99Ms * 1000),
      atMost(2),
    ),
    compare(
      `redirect, click durable ${name} the answer, processor time`,
      "µs",
      figures(name, ({ processorUs }) => processorUs),
      figures("bare", ({ processorUs }) => processorUs),
    ),
  ]);
};

type Measured = LoadResult & { readonly processorUs: number };

async function measure(server: Server, seconds: number): Promise<Measured> {
  const start = processorTimeOf(server.pid);
  const load = await followLink(server.url, seconds, RATE);
  const end = processorTimeOf(server.pid);
  return { ...load, processorUs: (end.main + end.others - start.main - start.others) / load.requests };
}

/** Starts a service whose log contains the link. */
async function serveLink(log: string, durability: "before" | "after"): Promise<Server> {
  {
    await using store = await openSqliteStore<Event>({ file: log, codec });
    const data = { domain: "go.example", code: "spring", target: "https://shop.example/" };
    await createEventLog(store, makeId).append(STREAMS.outreach, [{ type: "LinkAdded", data }], {});
  }
  return startService(log, { LINK_BASE: "https://go.example", REDIRECTS: "on", REDIRECT_DURABILITY: durability });
}
