import { join } from "node:path";
import { atLeast, compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench/measure";
import { CLIENT, postClicks } from "./post-clicks.ts";
import { startService, startWithout } from "./server.ts";

/** A head is signed in it, so that each round has the tree's work on what came in it. */
const SECONDS = 12;

/** Its share is small beside what varies from one round to the next. */
const ROUNDS = 10;

/** The intake of a service that keeps a Merkle tree against the same service that signs heads of the chain alone. */
export const tree: Bench = async (options) => {
  const seconds = options.quick ? 2 : SECONDS;
  await using service = await startService(join(options.directory, "tree.sqlite"));
  await using plain = await startWithout("tree", join(options.directory, "plain.sqlite"));
  const { ours, without } = await interleave(options.quick ? roundsOf(options) : ROUNDS, {
    without: () => postClicks(plain.url, seconds),
    ours: () => postClicks(service.url, seconds),
  });
  options.note(`the client is ${CLIENT}`);
  const rates = [ours, without].map((loads) => loads.map(({ perSecond }) => perSecond)) as [number[], number[]];
  return [compare("intake with the Merkle tree; limit: without", "/s", ...rates, atLeast(0.97))];
};
