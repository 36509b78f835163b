import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { createLogTree } from "eventstore-lite/proof";
import { rootsOfEvents } from "../src/testing/merkle-roots-of-events.ts";
import { temporaryLogs } from "../test/temporary-logs.ts";
import { startProgram } from "./start-program.ts";
import { isWhole } from "./required-tools.ts";

const newLogPath = temporaryLogs();

const KILLS = isWhole ? 200 : 40;
/**
 * Maximum time in ms from a program's first printed root until it is killed; the actual time is random. It allows for
 * some appends and their tiles.
 */
const LIFE_MS_MAX = 60;

test(`${KILLS} times kill -9 during tile writes leave only correct roots, and the next start continues`, async () => {
  const file = newLogPath();
  const said = new Map<number, string>();
  const onLine = (line: string): void => {
    const [size = "", root = ""] = line.split(" ");
    if (root.length === 64) said.set(Number(size), root);
  };
  for (let kill = 0; kill < KILLS; kill += 1) {
    const program = startProgram("append-and-tile", { arguments: [file], onLine });
    await program.said(() => true);
    await Bun.sleep(Math.random() * LIFE_MS_MAX);
    await program.kill();
  }
  await using store = await openSqliteStore({ file });
  const { position } = await store.head();
  const { size: events, rootOf } = await rootsOfEvents(store);
  expect(events).toBe(position);
  for (const [size, root] of said) expect([size, root]).toEqual([size, await rootOf(size)]);
  const tree = createLogTree(store);
  expect(await tree.extend(position)).toBe(true);
  expect(Buffer.from(await tree.at(position).root()).toString("hex")).toBe(await rootOf(position));
  console.log(`kill -9 ${KILLS} while tiles are written: ${said.size} roots said, all those of the log`);
});
