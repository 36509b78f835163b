import { describe, expect, test } from "bun:test";
import { writeCheckpointFile } from "../../src/proof/checkpoint-file.ts";
import { openSqliteStore } from "eventstore-lite";
import {
  CheckpointRefused,
  contradictionOf,
  formatPublicKey,
  openCheckpoint,
  parsePublicKey,
  readCheckpointFile,
  signCheckpoint,
  signingKeyOf,
  type Checkpoint,
  type SigningKey,
} from "eventstore-lite/proof";
import fc from "fast-check";
import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isSignedBy, parseNote, signNote } from "../../src/proof/signed-note.ts";
import { newEvents, refusalOf } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { rebuildChain, tamper } from "../tampering.ts";
import { temporaryLogs } from "../temporary-logs.ts";

const newLogPath = temporaryLogs();

const ORIGIN = "example.com/log-1";
const checkpoint: Checkpoint = {
  origin: ORIGIN,
  position: 42,
  hash: "0123456789abcdef".repeat(4),
  time: "2026-11-21T10:00:00.000Z",
};
const key: SigningKey = generateKeyPairSync("ed25519");
const otherKey: SigningKey = generateKeyPairSync("ed25519");
const note = signCheckpoint(checkpoint, key);

/** Returns the reason why a checkpoint's note is refused; undefined if it is accepted. */
function refusal(text: string, { publicKey } = key): string | undefined {
  try {
    openCheckpoint(text, publicKey);
    return undefined;
  } catch (error) {
    if (error instanceof CheckpointRefused) return error.reason;
    throw error;
  }
}

/** Signs any text with the test's key. */
const signed = (text: string) => signNote(text, text.slice(0, text.indexOf("\n")), key.privateKey, key.publicKey);

const HASH_LINE = note.split("\n")[2];

test("a seed of 32 bytes gives the key of RFC 8032, section 7.1, test 1", () => {
  const seed = Buffer.from("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "hex");
  const { publicKey } = signingKeyOf(seed);
  const expected = Buffer.from("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "hex");
  expect(formatPublicKey(publicKey)).toBe(expected.toString("base64"));
  expect(openCheckpoint(signCheckpoint(checkpoint, signingKeyOf(seed)), publicKey)).toEqual(checkpoint);
});

describe("a signed note", () => {
  // Note and key are the published example of golang.org/x/mod/sumdb/note.
  const example = `This is an example message.

— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=
`;
  const verifierKey = Buffer.from("AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", "base64");

  test("by another implementation is valid, under its name only", () => {
    const publicKey = parsePublicKey(verifierKey.subarray(1).toString("base64"));
    expect(isSignedBy(parseNote(example), "example.com/foo", publicKey)).toBe(true);
    expect(isSignedBy(parseNote(example), "example.com/bar", publicKey)).toBe(false);
    expect(isSignedBy(parseNote(example.replace("an example", "my example")), "example.com/foo", publicKey)).toBe(
      false,
    );
  });

  test("may have empty lines in its text", () => {
    const text = "first\n\nsecond\n\n";
    const parsed = parseNote(signNote(text, "name", key.privateKey, key.publicKey));
    expect(parsed.text).toBe(text);
    expect(isSignedBy(parsed, "name", key.publicKey)).toBe(true);
  });
});

describe("a checkpoint", () => {
  test("has the layout of tlog-checkpoint and gives back the signed values", () => {
    expect(note).toMatch(
      /^example\.com\/log-1\n42\n[\w+/]{43}=\ntime 2026-11-21T10:00:00\.000Z\n\n— example\.com\/log-1 [\w+/=]+\n$/,
    );
    expect(openCheckpoint(note, key.publicKey)).toEqual(checkpoint);
    const { time: _, ...timeless } = checkpoint;
    const without = signCheckpoint({ ...timeless, time: undefined }, key);
    expect(openCheckpoint(without, key.publicKey)).toEqual({ ...timeless, time: undefined });
  });

  test("is refused if it was signed with another key or for another log", () => {
    expect(refusal(note, otherKey)).toBe("signature");
    expect(refusal(note.replace("— example.com/log-1", "— example.com/log-2"))).toBe("signature");
    expect(refusal(note.replaceAll("log-1", "log-2"))).toBe("signature");
  });

  test("may have other signatures but is refused without a valid one of the log", () => {
    const foreign = signNote("x\n", ORIGIN, otherKey.privateKey, otherKey.publicKey).split("\n").at(-2);
    const [text = "", own = ""] = note.split("\n\n");
    expect(refusal(`${text}\n\n${foreign}\n${own}`)).toBeUndefined();
    expect(refusal(`${text}\n\n${foreign}\n`)).toBe("signature");
    // A signature by the log's own key, but over another text.
    const stale = signed(`${ORIGIN}\n41\n${HASH_LINE}\n`).split("\n\n")[1];
    expect(refusal(`${text}\n\n${stale}${own}`)).toBe("signature");
  });

  const malformed: Record<string, string> = {
    "no origin": "\n42\nx\n",
    "an origin with a space": signNote(`a b\n42\n${HASH_LINE}\n`, ORIGIN, key.privateKey, key.publicKey),
    "a leading zero": signed(`${ORIGIN}\n042\n${HASH_LINE}\n`),
    "a number beyond the safe integers": signed(`${ORIGIN}\n9007199254740993\n${HASH_LINE}\n`),
    "a negative number": signed(`${ORIGIN}\n-1\n${HASH_LINE}\n`),
    "a short hash": signed(`${ORIGIN}\n42\nAAAA\n`),
    "a hash in base64 that is not the canonical one": signed(`${ORIGIN}\n42\n${HASH_LINE!.slice(0, 42)}9=\n`),
    "no hash": signed(`${ORIGIN}\n42\n`),
    "a control character": signed(`${ORIGIN}\n42\n${HASH_LINE}\nmore\there\n`),
    "an empty extension line": signed(`${ORIGIN}\n42\n${HASH_LINE}\n\nmore\n`),
    "no signature": `${ORIGIN}\n42\n${HASH_LINE}\n\n`,
    "no empty line": note.replace("\n\n", "\n"),
    "Windows line breaks": note.replaceAll("\n", "\r\n"),
    "half a surrogate pair": note.replace("time", "time\ud800"),
    "a cut end": note.slice(0, -1),
    "more text after the end": `${note}more`,
    "too much text": `${"x".repeat(200_000)}\n${note}`,
    nothing: "",
  };
  for (const [what, text] of Object.entries(malformed)) {
    test(`with ${what} is malformed`, () => expect(refusal(text)).toBe("malformed"));
  }

  test("with any character changed, added or removed is refused", () => {
    const edit = fc.tuple(fc.nat(note.length), fc.nat(1), fc.string({ unit: "binary", maxLength: 2 }));
    fc.assert(
      fc.property(edit, ([at, taken, added]) => {
        const edited = note.slice(0, at) + added + note.slice(at + taken);
        fc.pre(edited !== note);
        expect(refusal(edited)).toBeDefined();
      }),
      { numRuns: 2_000 },
    );
  });

  test("read from any text is accepted or refused with a reason", () => {
    const line = fc.oneof(
      fc.constantFrom(...note.split("\n"), "", "0"),
      fc.string({ unit: "binary" }),
      fc.base64String().map((base64) => `— ${ORIGIN} ${base64}`),
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 8 }), (lines) => {
        const text = lines.join("\n");
        if (text !== note) expect(refusal(text)).toBeDefined();
        expect(["malformed", "signature"]).toContain(refusal(`${text}\n\nx`) ?? "taken");
      }),
      { numRuns: 2_000 },
    );
  });

  test("gives back exactly the signed values for any values", () => {
    const any = fc.record({
      origin: fc.stringMatching(/^[^\s+\p{Cc}]+$/u),
      position: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
      hash: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString("hex")),
      time: fc.option(
        fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
        { nil: undefined },
      ),
    });
    fc.assert(
      fc.property(any, (said) => {
        expect(openCheckpoint(signCheckpoint(said, key), key.publicKey)).toEqual(said);
      }),
      { numRuns: 300 },
    );
  });
});

describe("a checkpoint's file", () => {
  test("is replaced as a whole and readable by its owner only", async () => {
    const file = join(dirname(newLogPath()), "log.checkpoint");
    expect(await readCheckpointFile(file)).toBeUndefined();
    await writeCheckpointFile(file, "first, and longer\n");
    await writeCheckpointFile(file, note);
    expect(await readCheckpointFile(file)).toBe(note);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(dirname(file))).toEqual(["log.checkpoint"]);
  });

  test("leaves no partial file if it cannot be written", async () => {
    const taken = join(dirname(newLogPath()), "taken");
    mkdirSync(taken);
    // Writing a checkpoint's file does not replace a directory of that name.
    expect(await refusalOf(writeCheckpointFile(taken, note))).toBeInstanceOf(Error);
    expect(readdirSync(dirname(taken))).toEqual(["taken"]);
  });

  test("is malformed if it is not UTF-8", async () => {
    const file = join(dirname(newLogPath()), "log.checkpoint");
    writeFileSync(file, Buffer.of(0x61, 0xff, 0xfe));
    expect(await refusalOf(readCheckpointFile(file))).toMatchObject({ reason: "malformed" });
  });
});

describe("the comparison of a log with a checkpoint", () => {
  async function compared(change: (file: string) => void) {
    const file = newLogPath();
    await using store = await openSqliteStore({ file });
    await store.append("a", newEvents(10));
    const known = { ...checkpoint, ...(await store.head()) };
    await store.append("a", newEvents(5));
    change(file);
    expect(await store.verify()).toMatchObject({ ok: true });
    return await contradictionOf(store, ORIGIN, known);
  }

  test("finds no contradiction while the log only grows, even from empty", async () => {
    expect(await compared(() => {})).toBeUndefined();
    await using store = await openSqliteStore({ file: newLogPath() });
    const empty = { ...checkpoint, ...(await store.head()) };
    expect(await contradictionOf(store, ORIGIN, empty)).toBeUndefined();
    await store.append("a", newEvents(1));
    expect(await contradictionOf(store, ORIGIN, empty)).toBeUndefined();
  });

  test("finds a lost tail and where the log ends", async () => {
    expect(await compared((file) => tamper(file, "DELETE FROM events WHERE position > 7"))).toEqual({
      kind: "lost-tail",
      position: 7,
    });
  });

  test("finds another history of the same length", async () => {
    const rewritten = await compared((file) => {
      tamper(file, `UPDATE events SET data = '"other"' WHERE position = 4`);
      rebuildChain(file);
    });
    expect(rewritten).toEqual({ kind: "other-history", position: 10 });
  });

  test("finds a checkpoint of another log, unless the log holds all of its events", async () => {
    const file = newLogPath();
    await using store = await openSqliteStore({ file });
    await store.append("a", newEvents(3));
    const known = { ...checkpoint, ...(await store.head()) };
    const other = { kind: "other-log", position: 0 } as const;
    // The log that was imported from this one has another name and the same events, so the checkpoint fits it too.
    expect(await contradictionOf(store, "example.com/import", known)).toBeUndefined();
    expect(await contradictionOf(store, "example.com/import", { ...known, hash: "00".repeat(32) })).toEqual(other);
    expect(await contradictionOf(store, "example.com/import", { ...known, position: 4 })).toEqual(other);
    const empty = { ...known, position: 0, hash: "00".repeat(32) };
    expect(await contradictionOf(store, "example.com/import", empty)).toEqual(other);
  });

  test("does not find a change after the checkpoint", async () => {
    const rewritten = await compared((file) => {
      tamper(file, `UPDATE events SET data = '"other"' WHERE position = 12`);
      rebuildChain(file);
    });
    expect(rewritten).toBeUndefined();
  });
});
