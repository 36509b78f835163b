import { join } from "node:path";
import { atLeast, compare, interleave, roundsOf, type Bar, type Bench } from "eventstore-lite/bench";
import { CLIENT, measureClicks, type Measured } from "./post-clicks.ts";
import { startUnchanged, startWithout } from "./start-service-process.ts";

/**
 * Duration of a round in seconds. In that time a head of the log is signed, so each round includes the work for the
 * Merkle tree of its clicks.
 */
const SECONDS = 12;

/**
 * Number of rounds of the benchmark. It is larger than usual, because the cost of the Merkle tree is small compared
 * with the variation between rounds.
 */
const ROUNDS = 10;

/**
 * Measures the intake of a service that keeps a Merkle tree. Compares it with the same service that signs heads of the
 * hash chain alone.
 */
export const tree: Bench = async (options) => {
  const seconds = options.quick ? 2 : SECONDS;
  await using service = await startUnchanged(join(options.directory, "tree.sqlite"));
  await using plain = await startWithout("tree", join(options.directory, "plain.sqlite"));
  const { ours, without } = await interleave(options.quick ? roundsOf(options) : ROUNDS, {
    without: () => measureClicks(plain, seconds),
    ours: () => measureClicks(service, seconds),
  });
  options.note(`the client is ${CLIENT}`);
  const row = (what: string, unit: string, value: (load: Measured) => number, bar?: Bar) =>
    compare(`${what} with the Merkle tree; limit: without`, unit, ours.map(value), without.map(value), bar);
  return [
    row("intake", "/s", ({ perSecond }) => perSecond, atLeast(0.97)),
    row("processor time of a request", "µs", ({ main, others }) => main + others),
  ];
};
