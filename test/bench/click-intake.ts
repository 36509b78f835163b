import { dirname, join } from "node:path";
import { openSqliteStore } from "eventstore-lite";
import { atLeast, atMost, compare, interleave, roundsOf, type Bar, type Bench } from "eventstore-lite/bench";
import { codec, type Event } from "../../events/event-types-and-codec.ts";
import { CLIENT, CONNECTIONS, measureClicks, type Measured } from "./post-clicks.ts";
import { startBareRoute, startService, type Server } from "./start-service-process.ts";

/**
 * Measures durably accepted clicks a second. Compares them with the same Elysia route and schema with a synchronous
 * handler and no storage.
 */
export const intake: Bench = async (options) => {
  const seconds = options.quick ? 2 : 4;
  const log = join(options.directory, "intake.sqlite");
  let loads = 0;
  let acknowledged = 0;
  const { ours, bare } = await withServers(log, (service, bareRoute) =>
    interleave(roundsOf(options), {
      bare: () => measureClicks(bareRoute, seconds),
      ours: async () => {
        const load = await measureClicks(service, seconds);
        loads++;
        acknowledged += load.requests;
        return load;
      },
    }),
  );
  await expectRecorded(log, acknowledged, loads * CONNECTIONS);
  options.note(`the client is ${CLIENT}; the log holds every click that was acknowledged`);
  const row = (what: string, unit: string, value: (load: Measured) => number, bar?: Bar) =>
    compare(what, unit, ours.map(value), bare.map(value), bar);
  return [
    row(
      "intake, durable 202s; limit: the same route without storage",
      "/s",
      (load) => load.perSecond,
      atLeast(0.55, 0.75),
    ),
    row("intake, p50", "µs", (load) => load.p50Ms * 1000),
    row("intake, p99", "µs", (load) => load.p99Ms * 1000, atMost(4)),
    row("intake, processor time of a request on its thread", "µs", (load) => load.main, atMost(1.5)),
    row("intake, processor time of a request on all other threads", "µs", (load) => load.others),
  ];
};

async function withServers<Result>(
  log: string,
  work: (service: Server, bareRoute: Server) => Promise<Result>,
): Promise<Result> {
  await using service = await startService(log);
  await using bareRoute = await startBareRoute(dirname(log));
  return await work(service, bareRoute);
}

/**
 * Throws unless the log has all acknowledged clicks. It may have up to `inFlightMax` more, one for each connection: a
 * client counts no clicks that are in flight when it ends.
 */
async function expectRecorded(log: string, acknowledged: number, inFlightMax: number): Promise<void> {
  await using store = await openSqliteStore<Event>({ file: log, codec });
  let recorded = 0;
  for await (const batch of store.readFolded({ types: ["LinkClicked"] })) recorded += batch.length;
  if (recorded >= acknowledged && recorded <= acknowledged + inFlightMax) return;
  throw new Error(`${acknowledged} clicks were acknowledged, and the log holds ${recorded}`);
}
