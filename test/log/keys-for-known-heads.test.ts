// These tests call the code directly.
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadSigningKey, checkpointFiles } from "eventstore-lite/proof";
import { readKnownHeads } from "../../src/log/sign-and-compare-checkpoints.ts";
import { logFiles } from "../../src/log/log-file-paths.ts";

const directory = mkdtempSync(join(tmpdir(), "reachlog-test-"));
afterAll(() => rmSync(directory, { recursive: true }));

const files = logFiles(join(directory, "log.sqlite"));
const own = loadSigningKey(files.signingKey).publicKey;
const given = loadSigningKey(join(directory, "auditor.pem")).publicKey;
const head = join(directory, "head");
writeFileSync(files.checkpoint, "a checkpoint");
writeFileSync(head, "a head");

test("a given key verifies the given head, and the log's key the checkpoint", async () => {
  const known = await readKnownHeads(checkpointFiles(files), head, given);
  expect(known.map(({ publicKey }) => publicKey?.equals(own))).toEqual([true, false]);
  expect(known[1]?.publicKey?.equals(given)).toBe(true);
});

test("a given key verifies the checkpoint if no head is given", async () => {
  const [checkpoint] = await readKnownHeads(checkpointFiles(files), undefined, given);
  expect(checkpoint?.publicKey?.equals(given)).toBe(true);
});

test("the log's key verifies checkpoint and head if no key is given", async () => {
  const known = await readKnownHeads(checkpointFiles(files), head, undefined);
  expect(known.map(({ publicKey }) => publicKey?.equals(own))).toEqual([true, true]);
});
