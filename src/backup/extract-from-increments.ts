import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createTreeRange, loadSigningKey, openCheckpoint } from "eventstore-lite/proof";
import { copyFromSegments } from "eventstore-lite/segments";
import { formatOrigin, signChain } from "../log/sign-and-compare-checkpoints.ts";
import { ServiceError } from "../platform/service-error.ts";
import { VERSION } from "../platform/version.ts";
import type { Moment } from "../projector/parse-moment.ts";
import { keyId } from "../vault/derive-keys.ts";
import { copyUnchanged, measureAll, refuseAltered } from "./copy-backup-files-and-secrets.ts";
import { BEGINNING, type Increments, readIncrements, readSegment, secretFile } from "./increments-manifest.ts";
import { MANIFEST, type Manifest, NAMES, openSigningKey, SECRET_FILES, signManifest } from "./manifest.ts";
import { makeNewFile } from "../platform/new-file.ts";

/** Maximum number of reads of a folder of backups. If another backup is made during a read, the read starts over. */
const READS_MAX = 5;

/**
 * Reads a folder of incremental backups with `read`. A backup made meanwhile removes keys of the previous one; if the
 * read then throws or misses a file, it is repeated.
 */
export async function readSettled<Result>(
  folder: string,
  read: () => Promise<Result>,
  isWhole: (result: Result) => boolean = () => true,
): Promise<Result> {
  const manifest = join(folder, MANIFEST);
  const version = (): string | undefined => (existsSync(manifest) ? readFileSync(manifest, "utf8") : undefined);
  for (let times = 1; ; times++) {
    const before = version();
    const mayRepeat = (): boolean => times < READS_MAX && version() !== before;
    try {
      const result = await read();
      if (isWhole(result) || !mayRepeat()) return result;
    } catch (fault) {
      if (!mayRepeat()) throw fault;
    }
  }
}

/**
 * Builds the folder of one whole backup from incremental backups, as of a moment that they cover, for `restore` to
 * prove and place. Keys and vault are the newest; the log's own key signs the head. Throws a ServiceError.
 */
export async function extractBackup(folder: string, master: Uint8Array, target: string, { to, until }: Moment) {
  const increments = readIncrements(folder, master);
  const { log, epochs, backups } = increments;
  const newest = backups.at(-1)!;
  if (to !== undefined && to > newest.position)
    throw new ServiceError("usage", `${folder} ends at position ${newest.position}: it has no position ${to}`);
  // An earlier attempt may have left an unfinished folder.
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { mode: 0o700 });
  const file = join(target, NAMES.log);
  const segments = readSegments(folder, increments, to);
  const { head, root } = await copyFromSegments({ file, id: log, epochs, segments, to, until });
  refuseAltered(secretFile(folder, increments, "head"), increments.files.head);
  for (const name of ["vault", "keys", "signingKey"] as const) {
    await copyUnchanged(secretFile(folder, increments, name), join(target, NAMES[name]), increments.files[name]);
  }
  const key = await signingKey(folder, increments, master, target);
  const signed = signChain({ id: log }, head, key, () => Date.parse(newest.made_at), { root });
  await makeNewFile(join(target, NAMES.head), signed);
  const unsigned = {
    format: 1,
    version: VERSION,
    // The newest backup copied the keys at this time.
    made_at: newest.made_at,
    log: { id: log, position: head.position, hash: head.hash },
    master_key: keyId(master),
    files: measureAll(target, ["log", ...SECRET_FILES]),
  } as const;
  await makeNewFile(join(target, MANIFEST), JSON.stringify(signManifest<Manifest>(unsigned, master)));
}

/** Yields the segments of incremental backups with positions up to `to`; each is proved first. */
function* readSegments(folder: string, { log, segments }: Increments, to = Infinity) {
  let after = BEGINNING;
  for (const segment of segments) {
    if (segment.first > to) return;
    yield readSegment(folder, log, segment, after);
    after = { position: segment.last, hash: segment.hash };
  }
}

async function signingKey(folder: string, increments: Increments, master: Uint8Array, scratch: string) {
  const encrypted = secretFile(folder, increments, "signingKey");
  const pem = join(scratch, "signing.pem");
  await makeNewFile(pem, openSigningKey(readFileSync(encrypted), master, increments.log, encrypted));
  try {
    return loadSigningKey(pem);
  } finally {
    rmSync(pem);
  }
}

/**
 * Proves a folder of incremental backups without restoring it: each file's hash, the hash chain through all segments,
 * the backups' heads, and the signed root. Throws a ServiceError if the manifest is invalid.
 */
export async function verifyIncrements(
  folder: string,
  master: Uint8Array,
  { scratch, onProgress }: { readonly scratch: string; readonly onProgress: (checked: number) => void },
) {
  const increments = readIncrements(folder, master);
  const { log, segments, backups, files } = increments;
  /**
   * Faults found: a sentence for each missing or altered file, and for each backup whose recorded end is not the end of
   * a segment.
   */
  const faults: string[] = [];
  const attempt = <Result>(work: () => Result): Result | undefined => {
    try {
      return work();
    } catch (fault) {
      if (!(fault instanceof Error)) throw fault;
      faults.push(fault.message);
      return undefined;
    }
  };
  for (const name of SECRET_FILES) attempt(() => refuseAltered(secretFile(folder, increments, name), files[name]));
  const ends = new Map<number, string>([[0, BEGINNING.hash]]);
  const tree = createTreeRange(0);
  let after = BEGINNING;
  for (const segment of segments) {
    const opened = attempt(() => readSegment(folder, log, segment, after));
    if (opened !== undefined) tree.join(opened.tree);
    // A damaged segment is reported, and the segments after it are checked as well.
    after = { position: segment.last, hash: segment.hash };
    ends.set(after.position, after.hash);
    onProgress(after.position);
  }
  for (const [index, { position, hash }] of backups.entries()) {
    if (ends.get(position) === hash) continue;
    faults.push(`backup ${index + 1}: no segment ends with its head ${position} ${hash}`);
  }
  if (faults.length > 0) return { increments, faults };
  const { publicKey } = await signingKey(folder, increments, master, scratch);
  const note = secretFile(folder, increments, "head");
  const signed = attempt(() => openCheckpoint(readFileSync(note, "utf8"), publicKey));
  if (signed === undefined) return { increments, faults };
  const root = Buffer.from(tree.root()).toString("hex");
  const isSame = signed.origin === formatOrigin({ id: log }) && signed.position === after.position;
  if (!isSame || signed.hash !== after.hash || signed.root !== root)
    faults.push(`${note} is the signed head of another log`);
  return { increments, faults };
}
