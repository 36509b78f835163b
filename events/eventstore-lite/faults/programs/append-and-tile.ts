// Appends to the log named by its first argument, extends the Merkle tree after each append, and prints the root with
// the size that a signed head would have.
import { openSqliteStore } from "eventstore-lite";
import { createLogTree } from "eventstore-lite/proof";
import { newEvents } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { say } from "./print-line.ts";

const [file = ""] = process.argv.slice(2);
const store = await openSqliteStore({ file });
const tree = createLogTree(store);

/** Number of events in one append. Most appends fill a tile of level 0, so that most kills hit the writing of tiles. */
const EVENTS = 300;

for (;;) {
  const { last } = await store.append("a", newEvents(EVENTS));
  await tree.extend(last);
  say(last, Buffer.from(await tree.at(last).root()).toString("hex"));
}
