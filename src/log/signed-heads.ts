import {
  ChainBroken,
  type Checkpoint,
  CheckpointRefused,
  createLogTree,
  type SigningKey,
  proveEvent as proveByNote,
} from "eventstore-lite";
import type { LogStore } from "../../events/catalog.ts";
import type { Clock } from "../platform/clock.ts";
import { createFaultReport } from "../platform/logger.ts";
import { ServiceError } from "../platform/service-error.ts";
import { forgetSnapshots } from "../projector/snapshots.ts";
import {
  contradict,
  deniesRoot,
  findLoss,
  type Loss,
  signChain,
  signHead,
  type CheckpointStore,
  openNote,
  readNote,
} from "./checkpoint.ts";
import { type EventLog, SERVICE_METADATA, STREAMS, type PartDeps } from "./event-log.ts";
import { HARMLESS, ROLES, type Roles } from "./lease.ts";
import { startCosigning, type WitnessConfig } from "./cosigning.ts";

export interface CheckpointsDeps extends Pick<PartDeps, "eventLog" | "clock" | "logger"> {
  readonly roles: Roles;
  readonly checkpoints: CheckpointStore;
  readonly acceptLoss: boolean;
  /** Undefined if none is configured. */
  readonly witness?: WitnessConfig | undefined;
}

/** Bounds how much a start has to verify after a kill, and how much of the log's end could be lost unnoticed. */
const WRITE_EVERY_MS = 10_000;

/**
 * Compares the log with its last checkpoint. From then on, one of all instances writes newer ones, until disposed.
 * Throws a ServiceError (damaged) unless the loss is accepted, which becomes an event.
 */
export async function openSignedHeads(deps: CheckpointsDeps): Promise<AsyncDisposable> {
  const { eventLog, checkpoints, acceptLoss, logger } = deps;
  const { store } = eventLog;
  const hadKey = (await checkpoints.findKey()) !== undefined;
  const key = await checkpoints.loadKey();
  if (
    hadKey &&
    (await openNote(checkpoints.read(), key.publicKey)) === undefined &&
    (await store.head()).position > 0
  ) {
    logger.warn("the log's checkpoint is gone: a loss of the log's end cannot be detected", {
      checkpoint: checkpoints.checkpoint,
    });
  }
  const loss = await findLoss(store, checkpoints, key);
  if (loss !== undefined) {
    const unsigned = `${checkpoints.signingKey} was gone, and without it ${checkpoints.checkpoint} cannot be verified`;
    const sentence = hadKey || loss.newEvents.reason !== "unknown" ? loss.sentence : unsigned;
    if (!acceptLoss) throw new ServiceError("damaged", `${sentence}. ${LOSS_REMEDY}`);
    logger.warn("a loss was accepted", { loss: sentence });
    await accept(eventLog, loss);
    // Written before any other instance looks, since the others have accepted nothing.
    await checkpoints.write(signChain(store, await store.head(), key, deps.clock));
    await checkpoints.acceptLoss();
  }
  return deps.roles.start({ name: ROLES.signedHeads, ...HARMLESS }, () => keepCheckpoint(key, deps));
}

async function accept(eventLog: EventLog, { newEvents }: Loss): Promise<void> {
  // Snapshots may hold data from the lost events; the next start folds the log again.
  await forgetSnapshots(eventLog.store);
  const { position, hash } = await eventLog.store.head();
  const data = { ...newEvents, found_position: position, found_hash: hash };
  await eventLog.append(STREAMS.log, [{ type: "LogLossAccepted", data }], SERVICE_METADATA);
}

/** Writes a checkpoint now, at intervals if the head has moved, and at the end. Requests never wait for it. */
async function keepCheckpoint(
  key: SigningKey,
  { eventLog: { store }, checkpoints, clock, logger, witness }: CheckpointsDeps,
): Promise<AsyncDisposable> {
  const { publicKey } = key;
  const cosigning = witness && startCosigning({ store, checkpoints, publicKey, witness, logger });
  const tree = createLogTree(store);
  /** The newest head with a root. */
  let signed: string | undefined;
  let written: number | undefined;
  const report = createFaultReport(logger.warn, "the checkpoint could not be written");
  const write = async (): Promise<void> => {
    try {
      const head = await store.head();
      if (head.position === written) return;
      // If the log contradicts what another instance has seen, an operator has to accept that.
      const known = await readLast(checkpoints, key);
      if (known !== undefined && (await contradict(store, known, "")) !== undefined) return;
      if (known !== undefined && (await deniesRoot(tree, known))) throw new ChainBroken(known.position);
      // The tree of a log that had none is built in several turns.
      const hasTree = await tree.extend(head.position);
      const note = hasTree ? await signHead(store, head, key, clock) : signChain(store, head, key, clock);
      await checkpoints.write(note);
      report.succeeded();
      if (!hasTree) return;
      signed = note;
      written = head.position;
    } catch (fault) {
      // A full disk stops no requests. The old checkpoint stays true, and the next turn tries again.
      report.failed(fault);
    }
  };
  /** A head without events is not worth a cosignature. */
  const offer = (): void => {
    if (signed !== undefined && written !== 0) cosigning?.offer(signed);
  };
  let writing = write();
  await writing;
  offer();
  const timer = setInterval(() => {
    writing = writing.then(write).then(offer);
  }, WRITE_EVERY_MS);
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await cosigning?.[Symbol.asyncDispose]();
      await writing.then(write);
    },
  };
}

/** The last checkpoint; undefined if it proves nothing and may be replaced, as that of an empty log. */
async function readLast(checkpoints: CheckpointStore, { publicKey }: SigningKey): Promise<Checkpoint | undefined> {
  const known = await openNote(checkpoints.read(), publicKey);
  return known instanceof CheckpointRefused || known?.position === 0 ? undefined : known;
}

const LOSS_REMEDY = "Restore the whole log; or, to continue with what is left of it, run reachlog serve --accept-loss";

/** A signed head, as a note; or a sentence that says how the log contradicts its last checkpoint. */
export type SignedHead = { readonly note: string } | { readonly loss: string };

/** Signs the log's present position and hash, unless the log contradicts what was signed before. */
export async function signHeadNow(store: LogStore, checkpoints: CheckpointStore, clock: Clock): Promise<SignedHead> {
  const key = await checkpoints.loadKey();
  // A key that signed two histories of one log would prove neither.
  const loss = await findLoss(store, checkpoints, key);
  if (loss !== undefined) return { loss: loss.sentence };
  return { note: await signHead(store, await store.head(), key, clock) };
}

/**
 * A C2SP tlog-proof of the event at `position`, which the log holds; or how the log contradicts its last checkpoint.
 */
export async function proveEvent(store: LogStore, checkpoints: CheckpointStore, clock: Clock, position: number) {
  const proved = await proveEvents(store, checkpoints, clock, [position]);
  return "loss" in proved ? proved : { proof: proved.proofs.join("") };
}

/** Proves several events, all by one signed head. */
export async function proveEvents(
  store: LogStore,
  checkpoints: CheckpointStore,
  clock: Clock,
  positions: readonly number[],
): Promise<{ readonly proofs: readonly string[] } | Exclude<SignedHead, { note: string }>> {
  const key = await checkpoints.loadKey();
  const kept = await findCovering(checkpoints, key, Math.max(...positions));
  const signed = kept === undefined ? await signHeadNow(store, checkpoints, clock) : { note: kept };
  if ("loss" in signed) return signed;
  const proofs: string[] = [];
  for (const position of positions) proofs.push(await proveByNote(store, position, signed.note, key.publicKey));
  return { proofs };
}

/**
 * The newest checkpoint of a tree that holds the event, a cosigned one first: with it, a proof costs no new signature.
 */
async function findCovering(checkpoints: CheckpointStore, { publicKey }: SigningKey, position: number) {
  for (const read of [checkpoints.readCosigned, checkpoints.read]) {
    const note = await readNote(read());
    const known = await openNote(note, publicKey);
    if (known === undefined || known instanceof CheckpointRefused) continue;
    if (known.root !== undefined && known.position >= position) return note;
  }
  return undefined;
}
