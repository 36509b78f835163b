import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cosignedAt, parseNote } from "../../src/proof/signed-note.ts";
import { formatSubmission } from "../../src/proof/witness.ts";
import { openWitness, signCheckpoint, signingKeyOf } from "eventstore-lite/proof";
import { StoreUnusable } from "eventstore-lite/testing";
import { createTree, EMPTY_ROOT, hashLeaf, type Tree } from "../../src/proof/merkle-tree.ts";

const logKey = signingKeyOf(new Uint8Array(32).fill(1));
const witnessKey = signingKeyOf(new Uint8Array(32).fill(2));
const cosigner = { name: "witness.example", publicKey: witnessKey.publicKey };
const NOW_MS = 1_764_000_000_500;

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "witness-"));
  folders.push(folder);
  return join(folder, "witness.sqlite");
}

function open(file = newFile(), mayBegin = true) {
  const { privateKey } = witnessKey;
  return openWitness({ file, mayBegin, cosigner, privateKey, logKeys: [logKey.publicKey], clock: () => NOW_MS });
}

/** Returns the Merkle tree of a log with `size` events; with another `history`, the events differ from the third on. */
const treeOf = (size: number, history = ""): Tree =>
  createTree(size, async (_level, first, width) =>
    Buffer.concat(
      Array.from({ length: width }, (_, at) => hashLeaf(Buffer.from(`${first + at}${at < 2 ? "" : history}`))),
    ),
  );

async function headOf(size: number, history?: string, key = logKey, log = "log"): Promise<string> {
  const root = Buffer.from(await treeOf(size, history).root()).toString("hex");
  return signCheckpoint({ origin: log, position: size, hash: "00".repeat(32), root, time: undefined }, key);
}

async function submission(old: number, size: number, history?: string): Promise<string> {
  const proof = old === 0 || old > size ? [] : await treeOf(size, history).consistency(old);
  return formatSubmission({ old, proof, note: await headOf(size, history) });
}

describe("a witness", () => {
  test("cosigns a head and those that extend it", async () => {
    using witness = open();
    let old = 0;
    for (const size of [1, 1, 5, 8, 100]) {
      const { status, body } = witness.addCheckpoint(await submission(old, size));
      expect(status).toBe(200);
      expect(cosignedAt(parseNote((await headOf(size)) + body), cosigner)).toBe(Math.floor(NOW_MS / 1_000));
      old = size;
    }
  });

  test("accepts a first head without a proof and refuses one with hashes", async () => {
    using witness = open();
    const note = await headOf(8);
    const proof = await treeOf(8).consistency(5);
    expect(witness.addCheckpoint(formatSubmission({ old: 0, proof, note })).status).toBe(422);
    expect(witness.addCheckpoint(formatSubmission({ old: 0, proof: [], note })).status).toBe(200);
    expect(witness.addCheckpoint(formatSubmission({ old: 8, proof, note })).status).toBe(422);
    expect(witness.addCheckpoint(formatSubmission({ old: 8, proof: [], note })).status).toBe(200);
  });

  test("answers a wrong old size with its own size, even after a restart", async () => {
    const file = newFile();
    {
      using witness = open(file);
      expect(witness.addCheckpoint(await submission(0, 5)).status).toBe(200);
    }
    using witness = open(file);
    const expected = { status: 409, type: "text/x.tlog.size", body: "5\n" } as const;
    expect(witness.addCheckpoint(await submission(0, 8))).toEqual(expected);
    expect(witness.addCheckpoint(await submission(3, 8))).toEqual(expected);
    expect(witness.addCheckpoint(await submission(5, 8)).status).toBe(200);
  });

  test("does not open without its file unless it may begin", async () => {
    const file = newFile();
    const refused = (): unknown => {
      try {
        return open(file, false)[Symbol.dispose]();
      } catch (fault) {
        return fault;
      }
    };
    expect(refused()).toBeInstanceOf(StoreUnusable);
    expect(existsSync(file)).toBe(false);
    writeFileSync(file, "");
    expect(refused()).toBeInstanceOf(StoreUnusable);
    {
      using witness = open(file);
      witness.addCheckpoint(await submission(0, 8));
    }
    using witness = open(file, false);
    expect(witness.addCheckpoint(await submission(0, 5))).toMatchObject({ status: 409, body: "8\n" });
  });

  test("refuses a log that was rolled back", async () => {
    using witness = open();
    witness.addCheckpoint(await submission(0, 8));
    expect(witness.addCheckpoint(await submission(0, 5))).toMatchObject({ status: 409, body: "8\n" });
    expect(witness.addCheckpoint(await submission(8, 5)).status).toBe(400);
    expect(witness.addCheckpoint(await submission(8, 9)).status).toBe(200);
  });

  test("refuses a split view at the same size and at a larger one", async () => {
    using witness = open();
    witness.addCheckpoint(await submission(0, 5));
    expect(witness.addCheckpoint(await submission(5, 5, "other"))).toMatchObject({ status: 409, type: "text/plain" });
    expect(witness.addCheckpoint(await submission(5, 8, "other")).status).toBe(422);
    expect(witness.addCheckpoint(await submission(5, 8)).status).toBe(200);
  });

  test("tracks each log separately and refuses unknown keys", async () => {
    using witness = open();
    witness.addCheckpoint(await submission(0, 5));
    const other = await headOf(3, "other", logKey, "other-log");
    expect(witness.addCheckpoint(formatSubmission({ old: 0, proof: [], note: other })).status).toBe(200);
    const foreign = await headOf(8, "", signingKeyOf(new Uint8Array(32).fill(9)));
    expect(witness.addCheckpoint(formatSubmission({ old: 5, proof: [], note: foreign })).status).toBe(403);
  });

  test("cosigns only one of two histories submitted to two processes", async () => {
    const file = newFile();
    using one = open(file);
    using other = open(file);
    one.addCheckpoint(await submission(0, 5));
    expect(one.addCheckpoint(await submission(5, 8)).status).toBe(200);
    expect(other.addCheckpoint(await submission(5, 8, "other"))).toMatchObject({ status: 409, body: "8\n" });
  });

  test("accepts an empty log and then its first events", async () => {
    using witness = open();
    const root = Buffer.from(EMPTY_ROOT).toString("hex");
    const empty = signCheckpoint({ origin: "log", position: 0, hash: "00".repeat(32), root, time: undefined }, logKey);
    const body = formatSubmission({ old: 0, proof: [], note: empty });
    expect([witness.addCheckpoint(body).status, witness.addCheckpoint(body).status]).toEqual([200, 200]);
    expect(witness.addCheckpoint(await submission(0, 5)).status).toBe(200);
  });

  test.each(["", "old 1", "old -1\n\n", "old 01\n\nx", `old 0\n${"A\n".repeat(3)}\n`, "old 0\n\nno checkpoint\n"])(
    "refuses %j",
    (body) => {
      using witness = open();
      expect(witness.addCheckpoint(body).status).toBe(400);
    },
  );
});
