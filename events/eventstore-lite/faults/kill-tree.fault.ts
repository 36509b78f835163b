import { expect, test } from "bun:test";
import { createLogTree, hashLeaf, openSqliteStore } from "eventstore-lite";
import { createTree, foldHashes, TILE_HASHES } from "../src/merkle/tree.ts";
import { temporaryLogs } from "../test/temporary-logs.ts";
import { startProgram } from "./program.ts";
import { isWhole } from "./tools.ts";

const newLogPath = temporaryLogs();

const KILLS = isWhole ? 200 : 40;
/** A kill comes this long after the first root, at random: some appends and their tiles. */
const LIFE_MS_MAX = 60;

test(`${KILLS} times kill -9 while tiles are written: every root that was said is the log's, and the next start goes on`, async () => {
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
  const leaves: Uint8Array[] = [];
  for await (const events of store.readCanonical({ from: 1, to: Infinity })) leaves.push(...events.map(hashLeaf));
  const { position } = await store.head();
  expect(leaves).toHaveLength(position);
  // From the leaves alone, without a tile that any process stored; each full one is made once.
  const full = new Map<string, Promise<Uint8Array>>();
  const readTile = async (level: number, index: number, width: number): Promise<Uint8Array> => {
    const make = async (): Promise<Uint8Array> => {
      const children = Array.from({ length: width }, (_, at) => index * TILE_HASHES + at);
      if (level === 0) return Buffer.concat(children.map((child) => leaves[child]!));
      return Buffer.concat(
        await Promise.all(children.map(async (child) => foldHashes(await readTile(level - 1, child, TILE_HASHES)))),
      );
    };
    const made = full.get(`${level}/${index}/${width}`) ?? make();
    full.set(`${level}/${index}/${width}`, made);
    return made;
  };
  const rootOf = async (size: number): Promise<string> =>
    Buffer.from(await createTree(size, readTile).root()).toString("hex");
  for (const [size, root] of said) expect([size, root]).toEqual([size, await rootOf(size)]);
  const tree = createLogTree(store);
  expect(await tree.extend(position)).toBe(true);
  expect(Buffer.from(await tree.at(position).root()).toString("hex")).toBe(await rootOf(position));
  console.log(`kill -9 ${KILLS} while tiles are written: ${said.size} roots said, all those of the log`);
}, 1_200_000);
