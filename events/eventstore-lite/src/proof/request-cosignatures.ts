import { CheckpointRefused } from "../errors.ts";
import type { EventStore } from "../event-store-interface.ts";
import type { Checkpoint } from "./checkpoint.ts";
import { createLogTree } from "./log-tree.ts";
import { cosignedAt, parseNote, type Cosigner } from "./signed-note.ts";
import { formatSubmission } from "./witness.ts";

/** A witness of https://c2sp.org/tlog-witness. */
export interface WitnessConfig {
  /** Address of the witness, to which `/add-checkpoint` is added. */
  readonly url: string;
  readonly cosigner: Cosigner;
}

/** A witness's answer to a request to cosign a signed head of the log. */
export type Witnessed =
  /** Answer of a witness that has cosigned; `note` carries its cosignature. */
  | { readonly result: "cosigned"; readonly note: string }
  /**
   * Answer without a cosignature. The witness knows another history of this log or a longer one (`split`), is away or
   * proves nothing (`unavailable`), or has a newer head of this log (`stale`).
   */
  | { readonly result: "split" | "unavailable" | "stale"; readonly detail: string };

/** Posts a body to a URL. Returns the HTTP response, or a sentence that says why there is none. */
export type Post = (
  url: string,
  body: string,
  signal: AbortSignal | undefined,
) => Promise<{ readonly status: number; readonly type: string | null; readonly text: string } | string>;

/**
 * Maximum number of requests for one cosignature. The size that the witness knows may change once between two requests,
 * if another instance asked it.
 */
const ATTEMPTS_MAX = 3;

/**
 * Asks a witness to cosign a signed head of the log. `old`: number of the log's events that the witness is believed to
 * have seen.
 */
export async function requestCosignature(
  store: EventStore,
  { url, cosigner }: WitnessConfig,
  head: { readonly note: string; readonly checkpoint: Checkpoint },
  old: number,
  post: Post,
  signal?: AbortSignal,
): Promise<Witnessed> {
  const { note, checkpoint } = head;
  const size = checkpoint.position;
  let known = Math.min(old, size);
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const proof = known === size ? [] : await createLogTree(store).at(size).consistency(known);
    const body = formatSubmission({ old: known, proof, note });
    const answer = await post(`${url.replace(/\/$/, "")}/add-checkpoint`, body, signal);
    if (typeof answer === "string")
      return { result: "unavailable", detail: `the witness ${cosigner.name} does not answer: ${answer}` };
    const { status, type, text } = answer;
    if (status === 200) return readCosignature(note, text, cosigner);
    const isSize = type?.startsWith("text/x.tlog.size") === true;
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
  return {
    result: "unavailable",
    detail: `the witness ${cosigner.name} reports another size of the log in each answer`,
  };
}

async function readLonger(store: EventStore, { name }: Cosigner, theirs: number): Promise<Witnessed> {
  const { position } = await store.head();
  if (position >= theirs) return { result: "stale", detail: `the witness ${name} has a newer head of this log` };
  const detail = `the witness ${name} has cosigned ${theirs} events of this log, which ends at ${position}: it was rolled back`;
  return { result: "split", detail };
}

/**
 * Reads the witness's answer. Only its own cosignature counts, so a witness whose answer holds another signature does
 * not count as one that cosigned.
 */
function readCosignature(note: string, answer: string, cosigner: Cosigner): Witnessed {
  const lines = answer.split("\n").filter((line) => line.startsWith(`\u2014 ${cosigner.name} `));
  const cosigned = note + lines.map((line) => `${line}\n`).join("");
  try {
    if (cosignedAt(parseNote(cosigned), cosigner) !== undefined) return { result: "cosigned", note: cosigned };
  } catch (error) {
    if (!(error instanceof CheckpointRefused)) throw error;
  }
  return { result: "unavailable", detail: `the witness ${cosigner.name} answered without its cosignature` };
}

export interface CosigningOptions {
  /** Asks the witness to cosign a signed head. */
  ask(note: string, signal: AbortSignal): Promise<Witnessed>;
  /** Stores a note that carries the witness's cosignature. */
  write(note: string): Promise<void>;
  /**
   * Receives each answer of the witness that differs from the previous one. A cosignature is the expected answer, so it
   * is reported only if the previous answer was not a cosignature.
   */
  report(witnessed: Witnessed): void;
  /** Receives the error if `ask` or `write` rejects. */
  failed(fault: unknown): void;
}

/** Offers the log's new signed heads to a witness in the background. */
export interface Cosigning extends AsyncDisposable {
  /**
   * Offers a signed head to the witness. The newest head is offered again with each call, until the witness has
   * cosigned it. Never rejects.
   */
  offer(note: string): void;
}

export function startCosigning({ ask, write, report, failed }: CosigningOptions): Cosigning {
  const stopping = new AbortController();
  let [cosigned, said] = ["", ""];
  let working: Promise<void> | undefined;

  const work = async (note: string): Promise<void> => {
    try {
      const witnessed = await ask(note, stopping.signal);
      const detail = witnessed.result === "cosigned" ? "" : witnessed.detail;
      if (witnessed.result === "cosigned") {
        await write(witnessed.note);
        cosigned = note;
      }
      if (detail === said || stopping.signal.aborted) return;
      said = detail;
      report(witnessed);
    } catch (fault) {
      failed(fault);
    }
  };

  return {
    offer(note) {
      if (note !== cosigned) working ??= work(note).finally(() => (working = undefined));
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await working;
    },
  };
}
