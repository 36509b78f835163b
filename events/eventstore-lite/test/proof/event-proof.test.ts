import { describe, expect, test } from "bun:test";
import { formatProof } from "../../src/proof/event-proof.ts";
import type { Cosigner } from "../../src/proof/signed-note.ts";
import {
  CheckpointRefused,
  formatVerifierKey,
  openCheckpoint,
  openProof,
  parseVerifierKey,
  signCheckpoint,
  signingKeyOf,
  SigningKeyRefused,
} from "eventstore-lite/proof";
import { cosign, parseNote, signNote } from "../../src/proof/signed-note.ts";
import { createTree, hashLeaf, TILE_HASHES } from "../../src/proof/merkle-tree.ts";

const key = signingKeyOf(new Uint8Array(32).fill(1));
const events = Array.from({ length: 21 }, (_, at) => Buffer.from(`${at + 1}\nstream\n${at + 1}\nid\nT\n0\n{}\n{}`));
const tree = createTree(events.length, async (_level, index, width) =>
  Buffer.concat(events.slice(index * TILE_HASHES, index * TILE_HASHES + width).map(hashLeaf)),
);
const checkpoint = {
  origin: "example.com/log-1",
  position: events.length,
  hash: "0123456789abcdef".repeat(4),
  root: Buffer.from(await tree.root()).toString("hex"),
  time: "2026-11-21T10:00:00.000Z",
};
const note = signCheckpoint(checkpoint, key);
const position = 6;
const event = events[position - 1]!;
const proof = formatProof({ event, position, hashes: await tree.inclusion(position - 1), note });

function refusal(text: string, { publicKey } = key): string | undefined {
  try {
    openProof(text, publicKey);
    return undefined;
  } catch (error) {
    if (error instanceof CheckpointRefused) return error.reason;
    throw error;
  }
}

test("a tree's checkpoint contains its root and the end of the chain", () => {
  expect(openCheckpoint(note, key.publicKey)).toEqual(checkpoint);
  const [origin, size, root, chain, time] = note.split("\n");
  expect([origin, size]).toEqual(["example.com/log-1/tree", "21"]);
  expect(root).toBe(Buffer.from(checkpoint.root, "hex").toString("base64"));
  expect(chain).toBe(`chain ${Buffer.from(checkpoint.hash, "hex").toString("base64")}`);
  expect(time).toBe("time 2026-11-21T10:00:00.000Z");
});

test("a tree's checkpoint with a malformed chain hash is refused", () => {
  const text = parseNote(note).text.replace(/^chain .*$/m, "chain AA==");
  const signed = signNote(text, "example.com/log-1/tree", key.privateKey, key.publicKey);
  expect(refusal(proof.replace(note, signed))).toBe("malformed");
});

test("a proof is read back with its event and checkpoint", () => {
  expect(proof.split("\n").slice(0, 3)).toEqual([
    "c2sp.org/tlog-proof@v1",
    `extra ${event.toString("base64")}`,
    "index 5",
  ]);
  expect(openProof(proof, key.publicKey)).toEqual({
    event,
    position,
    stream: "stream",
    id: "id",
    type: "T",
    recordedMs: 0,
    data: {},
    checkpoint,
    cosignedAt: undefined,
  });
});

test("a proof checked with another key is refused", () => {
  expect(refusal(proof, signingKeyOf(new Uint8Array(32).fill(2)))).toBe("signature");
});

test("a checkpoint of the chain alone proves no event", () => {
  const { root: _, ...chain } = checkpoint;
  expect(refusal(proof.replace(note, signCheckpoint(chain, key)))).toBe("malformed");
});

test.each(Array.from(proof.matchAll(/[^\n]/g), ({ index }) => index).filter((at) => at % 7 === 0))(
  "a proof with another character at %d is refused",
  (at) => {
    const other = proof[at] === "A" ? "B" : "A";
    expect(refusal(proof.slice(0, at) + other + proof.slice(at + 1))).toBeOneOf(["malformed", "signature"]);
  },
);

test("a proof for another position than the event's is refused", async () => {
  expect(refusal(proof.replace("index 5", "index 4"))).toBe("signature");
  const hashes = await tree.inclusion(position);
  expect(refusal(formatProof({ event, position: position + 1, hashes, note }))).toBe("signature");
  for (const text of ["9\nof another place", "1\nstream\n1\nid\nT\n0\nno JSON\n{}"]) {
    const strange = Buffer.from(text);
    const alone = createTree(1, async () => hashLeaf(strange));
    const root = Buffer.from(await alone.root()).toString("hex");
    const signed = signCheckpoint({ ...checkpoint, position: 1, root }, key);
    expect(refusal(formatProof({ event: strange, position: 1, hashes: [], note: signed }))).toBe("malformed");
  }
});

test.each(["", "\n\n", "c2sp.org/tlog-proof@v1\n\n", proof.replace("extra ", "extra: "), proof.slice(0, 100)])(
  "the malformed proof %j is refused",
  (text) => {
    expect(refusal(text)).toBe("malformed");
  },
);

describe("a witness", () => {
  const witnessKey = signingKeyOf(new Uint8Array(32).fill(3));
  const witness: Cosigner = { name: "witness.example/w1", publicKey: witnessKey.publicKey };
  const cosignature = cosign(parseNote(note).text, witness, witnessKey.privateKey, 1_764_000_000);
  const cosigned = proof + cosignature;

  test("cosigns a head with a time in seconds", () => {
    expect(openProof(cosigned, key.publicKey, witness).cosignedAt).toBe(1_764_000_000);
    // A reader that knows no witness opens the proof by the log's own signature, and gets no time of a cosignature.
    expect(openProof(cosigned, key.publicKey).cosignedAt).toBeUndefined();
  });

  test("with a missing, altered or foreign cosignature is refused", () => {
    const others = signingKeyOf(new Uint8Array(32).fill(4)).publicKey;
    const bytes = Buffer.from(cosignature.split(" ")[2]!, "base64");
    for (const [text, by] of [
      [proof, witness],
      [cosigned, { ...witness, name: "witness.example/w2" }],
      [cosigned, { ...witness, publicKey: others }],
      ...Array.from(bytes.keys(), (at) => {
        const altered = bytes.with(at, bytes[at]! ^ 1);
        return [`${proof}\u2014 ${witness.name} ${Buffer.from(altered).toString("base64")}\n`, witness] as const;
      }),
    ] as const) {
      expect(() => openProof(text, key.publicKey, by)).toThrow("was not cosigned by the witness");
    }
  });

  test("has a verifier key that is parsed as formatted, and malformed ones are refused", () => {
    const text = formatVerifierKey(witness);
    expect(text).toMatch(/^witness\.example\/w1\+[0-9a-f]{8}\+B[A-Za-z0-9+/]{43}$/);
    expect(formatVerifierKey(parseVerifierKey(text))).toBe(text);
    const [name, id, base64] = [witness.name, text.split("+")[1], text.slice(-44)];
    for (const wrong of [
      "",
      base64,
      `${name}+00000000+${base64}`,
      `${name}+${id}+${base64.slice(1)}`,
      `w+${id}+${base64}`,
    ])
      expect(() => parseVerifierKey(wrong)).toThrow(SigningKeyRefused);
  });
});
