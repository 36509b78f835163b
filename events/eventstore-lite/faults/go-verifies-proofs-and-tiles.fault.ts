import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createTree, foldHashes, hashLeaf, TILE_HASHES, tilePath, type Tree } from "../src/proof/merkle-tree.ts";

/** Folder where Debian's golang-golang-x-mod-dev installs Go's implementation of transparency logs. */
const GO_PATH = "/usr/share/gocode";
const isMissing = Bun.which("go") === null || !existsSync(join(GO_PATH, "src/golang.org/x/mod/sumdb/tlog"));

const folder = mkdtempSync(join(tmpdir(), "tlog-"));
afterAll(() => rmSync(folder, { recursive: true }));

const SMALL_MAX = 300;
const LARGE = 1_000_000;
const FLIPS = 1_000;
const tiles = new Map<string, Promise<Uint8Array>>();

/**
 * Returns a tile of a test tree, whose leaf number n is made from n. Full tiles above level 0 are kept and made only
 * once.
 */
async function readTile(level: number, index: number, width: number): Promise<Uint8Array> {
  const name = tilePath(level, index, width);
  const make = async (): Promise<Uint8Array> => {
    const hashes: Uint8Array[] = [];
    for (let at = index * TILE_HASHES; at < index * TILE_HASHES + width; at += 1)
      hashes.push(level === 0 ? leafAt(at) : foldHashes(await readTile(level - 1, at, TILE_HASHES)));
    return Buffer.concat(hashes);
  };
  const made = tiles.get(name) ?? make();
  if (level > 0 && width === TILE_HASHES) tiles.set(name, made);
  return made;
}

const leafAt = (index: number): Uint8Array => hashLeaf(Buffer.from(`leaf ${index}`));
const treeOf = (size: number): Tree => createTree(size, readTile);
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
const numberBelow = (limit: number): number => Math.floor(Math.random() * limit);

interface Question {
  readonly Kind: "inclusion" | "consistency" | "tiles";
  readonly Size: number;
  readonly Root: string;
  readonly Index?: number;
  readonly Leaf?: string;
  readonly Old?: number;
  readonly OldRoot?: string;
  readonly Proof?: readonly string[];
  readonly TileFolder?: string;
}

function ask(questions: readonly Question[]): readonly string[] {
  const program = join(folder, "tlog");
  const env = { ...process.env, GO111MODULE: "off", GOPATH: GO_PATH, GOFLAGS: "", GOCACHE: join(folder, "cache") };
  if (!existsSync(program)) {
    const built = Bun.spawnSync(["go", "build", "-o", program, join(import.meta.dirname, "tlog/main.go")], { env });
    if (!built.success) throw new Error(built.stderr.toString());
  }
  const lines = questions.map((question) => `${JSON.stringify(question)}\n`).join("");
  const { stdout } = Bun.spawnSync([program], { stdin: Buffer.from(lines) });
  return stdout.toString().split("\n").slice(0, -1);
}

async function inclusionOf(size: number, index: number): Promise<Question> {
  const tree = treeOf(size);
  const proof = (await tree.inclusion(index)).map(base64);
  const Root = base64(await tree.root());
  return { Kind: "inclusion", Size: size, Root, Index: index, Leaf: base64(leafAt(index)), Proof: proof };
}

async function consistencyOf(size: number, old: number): Promise<Question> {
  const tree = treeOf(size);
  const proof = (await tree.consistency(old)).map(base64);
  const OldRoot = base64(await treeOf(old).root());
  return { Kind: "consistency", Size: size, Root: base64(await tree.root()), Old: old, OldRoot, Proof: proof };
}

/**
 * Returns a copy of a question to the Go program that verifies proofs. One bit is flipped: in a hash of the proof, in
 * the tree's root, or in the leaf or old root that the proof is about.
 */
function flipped(question: Question): Question {
  const flip = (text: string): string => {
    const bytes = Buffer.from(text, "base64");
    bytes[numberBelow(bytes.length)]! ^= 1 << numberBelow(8);
    return base64(bytes);
  };
  const { Proof = [] } = question;
  const part = numberBelow(Proof.length + 2);
  if (part === 0) return { ...question, Root: flip(question.Root) };
  if (part > 1) return { ...question, Proof: Proof.map((hash, at) => (at === part - 2 ? flip(hash) : hash)) };
  return question.Kind === "inclusion"
    ? { ...question, Leaf: flip(question.Leaf ?? "") }
    : { ...question, OldRoot: flip(question.OldRoot ?? "") };
}

/**
 * Writes the tiles (files with hashes of the Merkle tree) that Go needs to check the leaf number `index`, at the paths
 * that Go's tile library expects.
 */
async function writeTiles(size: number, index: number): Promise<Question> {
  const into = mkdtempSync(join(folder, "tiles-"));
  const read = async (level: number, at: number, width: number): Promise<Uint8Array> => {
    const bytes = await readTile(level, at, width);
    // Go's tile library puts the height of tiles before the level in a path; tlog-tiles leaves the height out.
    const file = join(into, tilePath(level, at, width).replace("tile/", "tile/8/"));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, bytes);
    return bytes;
  };
  const tree = createTree(size, read);
  const Root = base64(await tree.root());
  await tree.inclusion(index);
  for (let [level, at] = [0, index]; 256 ** level <= size; level += 1) {
    at = Math.floor(at / TILE_HASHES);
    const width = Math.min(TILE_HASHES, Math.floor(size / 256 ** level) - at * TILE_HASHES);
    if (width > 0) await read(level, at, width);
  }
  return { Kind: "tiles", Size: size, Root, Index: index, Leaf: base64(leafAt(index)), TileFolder: into };
}

test.skipIf(isMissing)(
  `Go's sumdb/tlog accepts proofs and tiles up to ${LARGE} leaves, and none with a flipped bit`,
  async () => {
    const questions: Question[] = [];
    for (let size = 1; size <= SMALL_MAX; size += 1) {
      for (const index of new Set([0, size - 1, numberBelow(size), numberBelow(size)])) {
        questions.push(await inclusionOf(size, index), await consistencyOf(size, index + 1));
      }
      questions.push(await writeTiles(size, numberBelow(size)));
    }
    for (const index of [0, 255, 65_536, LARGE - 1, numberBelow(LARGE), numberBelow(LARGE)]) {
      questions.push(await inclusionOf(LARGE, index), await consistencyOf(LARGE, index + 1));
      questions.push(await writeTiles(LARGE, index));
    }
    const answers = ask(questions);
    expect(questions.filter((_, at) => answers[at] !== "true").map(({ Kind, Size }) => `${Kind} ${Size}`)).toEqual([]);
    const proofs = questions.filter(({ Kind }) => Kind !== "tiles");
    const broken = Array.from({ length: FLIPS }, () => flipped(proofs[numberBelow(proofs.length)]!));
    const taken = ask(broken).filter((answer) => answer !== "false");
    expect(taken).toEqual([]);
    console.log(
      `tlog: Go took ${answers.length} proofs and tiles, and refused ${FLIPS} of ${FLIPS} with a flipped bit`,
    );
  },
);
