import type { KeyObject } from "node:crypto";
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { openCheckpoint, parseSize } from "./checkpoint.ts";
import { cosign, decodeBase64, parseNote, type Cosigner } from "./signed-note.ts";
import { CheckpointRefused, StoreUnusable } from "../errors.ts";
import { createPrivateFile } from "../write-private-file-durably.ts";
import { EMPTY_ROOT, provesConsistency } from "./merkle-tree.ts";

/** A log's request to a witness: its newest signed tree, and the proof that it extends the tree of size `old`. */
export interface Submission {
  readonly old: number;
  readonly proof: readonly Uint8Array[];
  readonly note: string;
}

/**
 * Maximum number of hashes in the consistency proof that a log submits with a head: the limit of
 * https://c2sp.org/tlog-witness.
 */
const PROOF_LINES_MAX = 63;

/** Formats the body of the POST to `add-checkpoint` with which a log submits a signed head to a witness. */
export function formatSubmission({ old, proof, note }: Submission): string {
  return [`old ${old}`, ...proof.map((hash) => Buffer.from(hash).toString("base64")), "", note].join("\n");
}

function parseSubmission(text: string): Submission | undefined {
  const end = text.indexOf("\n\n");
  const [first = "", ...lines] = text.slice(0, end).split("\n");
  const old = first.startsWith("old ") ? parseSize(first.slice("old ".length)) : undefined;
  const proof = lines.map((line) => decodeBase64(line));
  if (end === -1 || old === undefined || proof.length > PROOF_LINES_MAX) return undefined;
  return proof.every((hash) => hash !== undefined) ? { old, proof, note: text.slice(end + 2) } : undefined;
}

/** HTTP response of the witness to a log that submits a head. */
export interface WitnessAnswer {
  readonly status: 200 | 400 | 403 | 409 | 422;
  readonly type: "text/plain" | "text/x.tlog.size";
  readonly body: string;
}

export interface WitnessOptions {
  /** A database with the last cosigned head of each log. */
  readonly file: string;
  /** True if the witness's database may be created. Only a key that has cosigned nothing yet may begin without one. */
  readonly mayBegin: boolean;
  readonly cosigner: Cosigner;
  readonly privateKey: KeyObject;
  /**
   * Public keys of the logs whose heads the witness cosigns. The origin in a head, which is the log's name, tells the
   * logs apart.
   */
  readonly logKeys: readonly KeyObject[];
  /** Returns the time by which the witness signs, in ms since 1970. */
  readonly clock: () => number;
}

export interface Witness extends Disposable {
  /** Answers a POST to `add-checkpoint`. The witness records a log's head durably before it returns its cosignature. */
  addCheckpoint(submission: string): WitnessAnswer;
}

const TABLE = `
  PRAGMA synchronous = FULL;
  PRAGMA busy_timeout = 5000;
  CREATE TABLE IF NOT EXISTS heads (origin TEXT PRIMARY KEY, size INTEGER NOT NULL, root BLOB NOT NULL) STRICT`;

/**
 * Opens a witness of https://c2sp.org/tlog-witness: it cosigns a log's head only if it extends the last one. Throws
 * {@link StoreUnusable} if its database is gone and may not be created, because it would cosign a log that was rolled
 * back.
 */
export function openWitness({ file, mayBegin, cosigner, privateKey, logKeys, clock }: WitnessOptions): Witness {
  if (!mayBegin && !hasMemory(file))
    throw new StoreUnusable(`${file} is gone or empty: this witness no longer knows which heads it cosigned`);
  createPrivateFile(file);
  const db = new DatabaseSync(file);
  db.exec(TABLE);
  const read = db.prepare("SELECT size, root FROM heads WHERE origin = ?");
  const write = db.prepare("INSERT OR REPLACE INTO heads (origin, size, root) VALUES (?, ?, ?)");

  /**
   * Compares the head that a log submits with the last one that was cosigned: stores it if it extends that one, else
   * returns the refusal. Runs in a transaction, so that of two concurrent submissions the second is compared with the
   * first.
   */
  function exchange(
    { old, proof }: Submission,
    origin: string,
    size: number,
    root: Uint8Array,
  ): WitnessAnswer | undefined {
    const row = read.get(origin) as { readonly size: number; readonly root: Uint8Array } | undefined;
    const last = row ?? { size: 0, root: EMPTY_ROOT };
    if (old !== last.size) return { status: 409, type: "text/x.tlog.size", body: `${last.size}\n` };
    if (size === last.size && !Buffer.from(root).equals(last.root))
      return refusal(409, "another root was cosigned for this size: this is a split view");
    const isProved = old === 0 ? proof.length === 0 : provesConsistency(last, { size, root }, proof);
    if (!isProved) return refusal(422, "the head does not extend the last one that was cosigned");
    write.run(origin, size, root);
    return undefined;
  }

  return {
    addCheckpoint(text) {
      const submission = parseSubmission(text);
      if (submission === undefined) return refusal(400, "this is no submission of tlog-witness");
      const opened = openSigned(submission.note, logKeys);
      if (typeof opened !== "object") return refusal(opened, "no key that is known here signed this checkpoint");
      const { text: signed, size, root } = opened;
      if (submission.old > size) return refusal(400, "the old size is beyond the checkpoint");
      db.exec("BEGIN IMMEDIATE");
      try {
        const refused = exchange(submission, signed.slice(0, signed.indexOf("\n")), size, root);
        db.exec("COMMIT");
        if (refused !== undefined) return refused;
      } catch (error) {
        if (db.isTransaction) db.exec("ROLLBACK");
        throw error;
      }
      const body = cosign(signed, cosigner, privateKey, Math.floor(clock() / 1_000));
      return { status: 200, type: "text/plain", body };
    },
    [Symbol.dispose]: () => db.close(),
  };
}

function hasMemory(file: string): boolean {
  if (!existsSync(file)) return false;
  using db = new DatabaseSync(file, { readOnly: true });
  return db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'heads'").get() !== undefined;
}

/** Returns the signed tree, or the status of the refusal: 400 if it is malformed, 403 if no known key signed it. */
function openSigned(note: string, keys: readonly KeyObject[]) {
  for (const key of keys) {
    try {
      const { position: size, root, hash } = openCheckpoint(note, key);
      return { text: parseNote(note).text, size, root: Buffer.from(root ?? hash, "hex") };
    } catch (error) {
      if (!(error instanceof CheckpointRefused)) throw error;
      if (error.reason === "malformed") return 400;
    }
  }
  return 403;
}

function refusal(status: 400 | 403 | 409 | 422, sentence: string): WitnessAnswer {
  return { status, type: "text/plain", body: `${sentence}\n` };
}
