import type { KeyObject } from "node:crypto";
import {
  CheckpointRefused,
  cosignedAt,
  createLogTree,
  formatSubmission,
  openCheckpoint,
  parseNote,
  type Checkpoint,
  type Cosigner,
} from "eventstore-lite";
import type { LogStore } from "../../events/catalog.ts";
import { createSafeFetch, type NetworkAnswer, NetworkFault } from "../networks/safe-fetch.ts";
import { errorFields, type Logger } from "../platform/logger.ts";
import { type CheckpointStore, openNote } from "./checkpoint.ts";

/** A witness of https://c2sp.org/tlog-witness. */
export interface WitnessConfig {
  /** Its submission prefix. */
  readonly url: string;
  readonly cosigner: Cosigner;
}

/** A witness's answer about a head. */
export type Witnessed =
  /** `note` carries the witness's cosignature. */
  | { readonly result: "cosigned"; readonly note: string }
  /**
   * `split`: the witness knows another history of this log, or a longer one. `unavailable`: it is away, or its answer
   * proves nothing. `stale`: it has a newer head of this log.
   */
  | { readonly result: "split" | "unavailable" | "stale"; readonly detail: string };

/** Timeout of a request. A slow witness delays its next answer, and nothing else. */
const TIMEOUT_MS = 5_000;

/** The size that the witness knows may change once between two requests, if another instance asked it. */
const ATTEMPTS_MAX = 3;

/** Has a witness cosign a signed head of the log. `old`: the size that the witness is believed to know. */
export async function askWitness(
  store: LogStore,
  { url, cosigner }: WitnessConfig,
  head: { readonly note: string; readonly checkpoint: Checkpoint },
  old: number,
  signal?: AbortSignal,
): Promise<Witnessed> {
  const { note, checkpoint } = head;
  const size = checkpoint.position;
  const send = createSafeFetch({ allowedOrigins: [url] });
  let known = Math.min(old, size);
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const proof = known === size ? [] : await createLogTree(store).at(size).consistency(known);
    const body = formatSubmission({ old: known, proof, note });
    let answer: NetworkAnswer;
    try {
      answer = await send(`${url.replace(/\/$/, "")}/add-checkpoint`, {
        method: "POST",
        body,
        timeoutMs: TIMEOUT_MS,
        signal,
      });
    } catch (fault) {
      if (!(fault instanceof NetworkFault)) throw fault;
      return { result: "unavailable", detail: `the witness ${cosigner.name} does not answer: ${fault.message}` };
    }
    const { status, text, headers } = answer;
    if (status === 200) return readCosignature(note, text, cosigner);
    const isSize = headers.get("content-type")?.startsWith("text/x.tlog.size") === true;
    const theirs = status === 409 && isSize && /^\d{1,15}\n$/.test(text) ? Number(text) : undefined;
    if (theirs === undefined && status !== 409 && status !== 422)
      return { result: "unavailable", detail: `the witness ${cosigner.name} answers ${status}` };
    if (theirs === undefined || theirs === known)
      return {
        result: "split",
        detail: `the witness ${cosigner.name} knows another history of this log (${status}): a split view`,
      };
    if (theirs > size) return readLonger(store, cosigner, theirs);
    known = theirs;
  }
  return { result: "unavailable", detail: `the witness ${cosigner.name} changes what it knows with each answer` };
}

async function readLonger(store: LogStore, { name }: Cosigner, theirs: number): Promise<Witnessed> {
  const { position } = await store.head();
  if (position >= theirs) return { result: "stale", detail: `the witness ${name} has a newer head of this log` };
  const detail = `the witness ${name} has cosigned ${theirs} events of this log, which ends at ${position}: it was rolled back`;
  return { result: "split", detail };
}

/** Only the witness's own cosignature counts, so a witness that lies is not taken for one that cosigned. */
function readCosignature(note: string, answer: string, cosigner: Cosigner): Witnessed {
  const lines = answer.split("\n").filter((line) => line.startsWith(`\u2014 ${cosigner.name} `));
  const cosigned = note + lines.map((line) => `${line}\n`).join("");
  try {
    if (cosignedAt(parseNote(cosigned), cosigner) !== undefined) return { result: "cosigned", note: cosigned };
  } catch (fault) {
    if (!(fault instanceof CheckpointRefused)) throw fault;
  }
  return { result: "unavailable", detail: `the witness ${cosigner.name} answered without its cosignature` };
}

export interface CosigningDeps {
  readonly store: LogStore;
  readonly checkpoints: CheckpointStore;
  readonly publicKey: KeyObject;
  readonly witness: WitnessConfig;
  readonly logger: Logger;
}

/** Offers heads to a witness in the background. */
export function startCosigning({ store, checkpoints, publicKey, witness, logger }: CosigningDeps) {
  const stopping = new AbortController();
  let [cosigned, said] = ["", ""];
  let working: Promise<void> | undefined;

  const work = async (note: string): Promise<void> => {
    try {
      const head = { note, checkpoint: openCheckpoint(note, publicKey) };
      const old = await cosignedPosition(checkpoints, publicKey);
      const witnessed = await askWitness(store, witness, head, old, stopping.signal);
      const detail = witnessed.result === "cosigned" ? "" : witnessed.detail;
      if (witnessed.result === "cosigned") {
        await checkpoints.writeCosigned(witnessed.note);
        cosigned = note;
      }
      if (detail === said || stopping.signal.aborted) return;
      said = detail;
      if (detail === "") logger.info("the witness cosigns again");
      else logger[witnessed.result === "split" ? "error" : "warn"]("the witness did not cosign the head", { detail });
    } catch (fault) {
      logger.warn("a head could not be cosigned", errorFields(fault));
    }
  };

  return {
    /** Asks about the newest head again with each offer, until it is cosigned. Never rejects. */
    offer(note: string): void {
      if (note !== cosigned) working ??= work(note).finally(() => (working = undefined));
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await working;
    },
  };
}

/** Position up to which a witness has cosigned the log; 0 if none has. */
export async function cosignedPosition(checkpoints: CheckpointStore, publicKey: KeyObject): Promise<number> {
  const known = await openNote(checkpoints.readCosigned(), publicKey);
  return known === undefined || known instanceof CheckpointRefused ? 0 : known.position;
}
