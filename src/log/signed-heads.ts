import { existsSync } from "node:fs";
import { loadSigningKey, writeCheckpointFile, type EventStore, type SigningKey } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import type { Clock } from "../platform/clock.ts";
import { OWN_CAUSE, STREAMS, type Journal } from "./event-log.ts";
import type { LogFiles } from "./log-files.ts";
import { faultFields, type Logger } from "../platform/logger.ts";
import { forgetSnapshots } from "../projector/forget.ts";
import type { Loss } from "./contradict.ts";
import { findLoss } from "./find-loss.ts";
import { signHead } from "./sign-head.ts";

/** The log does not hold what its last checkpoint knew. The message says what is missing, and what can be done. */
export class LogContradicted extends Error {
  override readonly name = "LogContradicted";
  constructor(sentence: string) {
    super(`${sentence}. Restore the whole log; or, to go on with what is left of it, run reachlog serve --accept-loss`);
  }
}

export interface CheckpointsDeps {
  readonly journal: Journal;
  readonly files: LogFiles;
  readonly acceptLoss: boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Bounds what a start has to verify after a kill, and what of the log's end could be lost unnoticed. */
const WRITE_EVERY_MS = 10_000;

/**
 * Compares the log with its last checkpoint, and keeps a newer one beside it from then on, until it is disposed.
 * Throws {@link LogContradicted} unless the loss is accepted, which becomes an event.
 */
export async function openCheckpoints(deps: CheckpointsDeps): Promise<AsyncDisposable> {
  const { journal, files, acceptLoss, log } = deps;
  const { store } = journal;
  const hadKey = existsSync(files.signingKey);
  const key = loadSigningKey(files.signingKey);
  if (hadKey && !existsSync(files.checkpoint) && (await store.head()).position > 0) {
    log.warn("the log's checkpoint is gone: whether the log has lost its end cannot be said", {
      file: files.checkpoint,
    });
  }
  const loss = await findLoss(store, files.checkpoint, key);
  if (loss !== undefined) {
    const sentence = hadKey || loss.facts.reason !== "unknown" ? loss.sentence : unsigned(files);
    if (!acceptLoss) throw new LogContradicted(sentence);
    log.warn("a loss was accepted", { loss: sentence });
    await accept(journal, loss);
  }
  return keepCheckpoint(store, key, deps);
}

function unsigned({ signingKey, checkpoint }: LogFiles): string {
  return `${signingKey} was gone, and without it nobody can say whether ${checkpoint} is the log's`;
}

async function accept(journal: Journal, { facts }: Loss): Promise<void> {
  // They may tell of events that are lost; what is in the log is folded anew.
  await forgetSnapshots(journal.store);
  const { position, hash } = await journal.store.head();
  const data = { ...facts, found_position: position, found_hash: hash };
  await journal.append(STREAMS.log, [{ type: "LogLossAccepted", data }], OWN_CAUSE);
}

/** Writes a checkpoint now, when the head has moved by the time, and at the end. Requests never wait for it. */
async function keepCheckpoint(
  store: EventStore<Event>,
  key: SigningKey,
  { files, clock, log }: CheckpointsDeps,
): Promise<AsyncDisposable> {
  let written: number | undefined;
  const write = async (): Promise<void> => {
    try {
      const head = await store.head();
      if (head.position === written) return;
      await writeCheckpointFile(files.checkpoint, signHead(store, head, key, clock));
      written = head.position;
    } catch (fault) {
      // A full disk stops no requests. The old checkpoint stays true, and the next time this is tried again.
      log.warn("the checkpoint could not be written", faultFields(fault));
    }
  };
  let writing = write();
  await writing;
  const timer = setInterval(() => {
    writing = writing.then(write);
  }, WRITE_EVERY_MS);
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await writing.then(write);
    },
  };
}
