// On no harness.
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadSigningKey } from "eventstore-lite";
import { readKnownHeads, checkpointFiles } from "../../src/log/checkpoint.ts";
import { logFiles } from "../../src/log/log-files.ts";

const directory = mkdtempSync(join(tmpdir(), "reachlog-test-"));
afterAll(() => rmSync(directory, { recursive: true }));

const files = logFiles(join(directory, "log.sqlite"));
const own = loadSigningKey(files.signingKey).publicKey;
const given = loadSigningKey(join(directory, "auditor.pem")).publicKey;
const head = join(directory, "head");
writeFileSync(files.checkpoint, "a checkpoint");
writeFileSync(head, "a head");

test("a key that is given is the head's; the checkpoint beside the log is of the log's own", async () => {
  const known = await readKnownHeads(checkpointFiles(files), head, given);
  expect(known.map(({ publicKey }) => publicKey?.equals(own))).toEqual([true, false]);
  expect(known[1]?.publicKey?.equals(given)).toBe(true);
});

test("without a head, a key that is given is the checkpoint's", async () => {
  const [checkpoint] = await readKnownHeads(checkpointFiles(files), undefined, given);
  expect(checkpoint?.publicKey?.equals(given)).toBe(true);
});

test("without a key, all is of the log's own", async () => {
  const known = await readKnownHeads(checkpointFiles(files), head, undefined);
  expect(known.map(({ publicKey }) => publicKey?.equals(own))).toEqual([true, true]);
});
