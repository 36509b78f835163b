// These tests call the code directly.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { sqliteSecrets } from "../../src/vault/sqlite-secrets.ts";
import { createRandom } from "../harness/random.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";

/** Number of bytes of a ciphertext that are searched for: a part of a ciphertext reveals a part of the secret. */
const PIECE = 16;
const CIPHERTEXT_BYTES = 72;

/**
 * Seeds for random changes after which SQLite would leave a copy of a deleted ciphertext if the table were ordered by
 * name.
 */
const SEEDS = [9, 19, 39, 53, 59, 71];

test.each(SEEDS)("the file holds no bytes of deleted ciphertexts after random changes (seed %d)", async (seed) => {
  const random = createRandom(seed);
  const upTo = (most: number): number => Math.floor(random() * most);
  const draw = (bytes: number): Buffer => Buffer.from(Array.from({ length: bytes }, () => upTo(256)));
  using directory = temporaryFolder();
  const file = directory.file("keys");
  await using database = await sqliteSecrets(file).open();
  const kept = new Map<string, Buffer>();
  const deleted: Buffer[] = [];
  for (let change = 0; change < 40; change++) {
    await database.transact(async ({ add, bury, remove }) => {
      if (random() < 0.5) {
        const added = Array.from({ length: upTo(120) }, () => {
          const name = draw(4 + upTo(18)).toString("hex");
          return { name, key: "data key", ciphertext: draw(CIPHERTEXT_BYTES) };
        });
        await add(added);
        for (const { name, ciphertext } of added) kept.set(name, ciphertext);
        return;
      }
      const names = [...kept.keys()];
      for (const name of new Set(
        Array.from({ length: Math.min(30, names.length) }, () => names[upTo(names.length)]!),
      )) {
        deleted.push(kept.get(name)!);
        kept.delete(name);
        await (random() < 0.5 ? bury(name) : remove(name));
      }
    });
  }
  const bytes = readFileSync(file);
  const isThere = (ciphertext: Buffer): boolean =>
    [0, 28, CIPHERTEXT_BYTES - PIECE].some((at) => bytes.includes(ciphertext.subarray(at, at + PIECE)));
  expect(deleted.length).toBeGreaterThan(100);
  expect([...kept.values()].every(isThere)).toBe(true);
  expect(deleted.filter(isThere)).toEqual([]);
});
