import {
  ChainBroken,
  type Checkpoint,
  CheckpointRefused,
  createLogTree,
  type SigningKey,
  proveEvent as proveByNote,
  type CheckpointStore,
  type WitnessConfig,
} from "eventstore-lite/proof";
import type { LogStore } from "../../events/event-types-and-codec.ts";
import type { Clock } from "../platform/clock-ids-and-timers.ts";
import { createFaultReport } from "../platform/logger.ts";
import { ServiceError } from "../platform/service-error.ts";
import { forgetSnapshots } from "../projector/past-snapshots.ts";
import {
  contradict,
  findLoss,
  type Loss,
  signChain,
  signHead,
  openNote,
  readNote,
} from "./sign-and-compare-checkpoints.ts";
import { type EventLog, SERVICE_METADATA, STREAMS, type LogContext } from "./event-log.ts";
import { HARMLESS, ROLES, type Roles } from "./leases-and-roles.ts";
import { cosignHeads } from "./cosigning.ts";

/** Context of a log whose heads are signed, and the store of its checkpoints. */
export interface SignedHeadsContext extends LogContext {
  readonly checkpoints: CheckpointStore;
  /** Configured witness that cosigns heads; undefined if there is none. */
  readonly witness?: WitnessConfig | undefined;
}

/**
 * Interval between two checkpoints, in ms. It bounds how much a start has to verify after a kill, and how much of the
 * log's end could be lost unnoticed.
 */
const WRITE_EVERY_MS = 10_000;

/**
 * Compares the log with its last checkpoint. From then on, one instance writes newer ones, until this is disposed.
 * Throws a ServiceError (damaged) if events are lost, unless the loss is accepted, which becomes an event.
 */
export async function openSignedHeads(
  context: SignedHeadsContext,
  roles: Roles,
  acceptLoss = false,
): Promise<AsyncDisposable> {
  const { eventLog, checkpoints, logger } = context;
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
    // The operator accepted the loss on this instance only. So the new checkpoint is written first: another instance
    // that still found the old one would refuse to start.
    await checkpoints.write(signChain(store, await store.head(), key, context.clock));
    await checkpoints.acceptLoss();
  }
  return roles.start({ name: ROLES.signedHeads, ...HARMLESS }, () => keepCheckpoint(key, context));
}

async function accept(eventLog: EventLog, { newEvents }: Loss): Promise<void> {
  // Snapshots may hold data from the lost events, so all are removed, and the next start folds the log again.
  await forgetSnapshots(eventLog.store);
  const { position, hash } = await eventLog.store.head();
  const data = { ...newEvents, found_position: position, found_hash: hash };
  await eventLog.append(STREAMS.log, [{ type: "LogLossAccepted", data }], SERVICE_METADATA);
}

/**
 * Signs the log's head and stores it as the checkpoint with which the next start compares the log: now, every
 * {@link WRITE_EVERY_MS} if the log has grown, and when disposed. Requests never wait for it.
 */
async function keepCheckpoint(
  key: SigningKey,
  { eventLog: { store }, checkpoints, clock, logger, witness }: SignedHeadsContext,
): Promise<AsyncDisposable> {
  const { publicKey } = key;
  const cosigning = witness && cosignHeads({ store, checkpoints, publicKey, witness, logger });
  const tree = createLogTree(store);
  /**
   * Newest head that this instance has signed with a root of the Merkle tree; undefined until the log's tree is built.
   * The witness is offered this head.
   */
  let signed: string | undefined;
  let written: number | undefined;
  const report = createFaultReport(logger.warn, "the checkpoint could not be written");
  const write = async (): Promise<void> => {
    try {
      const head = await store.head();
      if (head.position === written) return;
      // If the log contradicts the checkpoint that another instance has written, none is written until an operator
      // accepts that.
      const known = await readLast(checkpoints, key);
      if (known !== undefined && (await contradict(store, known, "")) !== undefined) return;
      if (known !== undefined && (await tree.denies(known))) throw new ChainBroken(known.position);
      // Building the tree of a log without one takes several turns; until then the checkpoint has no root.
      const hasTree = await tree.extend(head.position);
      const note = hasTree ? await signHead(store, head, key, clock) : signChain(store, head, key, clock);
      await checkpoints.write(note);
      report.succeeded();
      if (!hasTree) return;
      signed = note;
      written = head.position;
    } catch (fault) {
      // A fault such as a full disk must not stop requests. The old checkpoint stays valid, and the next turn tries
      // again.
      report.failed(fault);
    }
  };
  /** Offers the newest signed head to the witness, unless the log was empty. */
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

/** Reads the last checkpoint; undefined if it may be replaced, because it proves nothing or is that of an empty log. */
async function readLast(checkpoints: CheckpointStore, { publicKey }: SigningKey): Promise<Checkpoint | undefined> {
  const known = await openNote(checkpoints.read(), publicKey);
  return known instanceof CheckpointRefused || known?.position === 0 ? undefined : known;
}

const LOSS_REMEDY = "Restore the whole log; or, to continue with what is left of it, run reachlog serve --accept-loss";

/**
 * Signed note of the log's head; or `loss` if nothing was signed: a sentence that says how the log contradicts its last
 * checkpoint.
 */
export type SignedHead = { readonly note: string } | { readonly loss: string };

/** Signs the log's present head, unless the log contradicts what was signed before. */
export async function signHeadNow(store: LogStore, checkpoints: CheckpointStore, clock: Clock): Promise<SignedHead> {
  const key = await checkpoints.loadKey();
  // If the log contradicts what was signed before, no head is signed: a key that signed two histories of one log would
  // prove neither.
  const loss = await findLoss(store, checkpoints, key);
  if (loss !== undefined) return { loss: loss.sentence };
  return { note: await signHead(store, await store.head(), key, clock) };
}

/**
 * Creates a C2SP tlog-proof of the event at `position`, which the log holds; or says how the log contradicts its last
 * checkpoint.
 */
export async function proveEvent(store: LogStore, checkpoints: CheckpointStore, clock: Clock, position: number) {
  const proved = await proveEvents(store, checkpoints, clock, [position]);
  return "loss" in proved ? proved : { proof: proved.proofs.join("") };
}

/** Creates proofs of several events, all by one signed head. */
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
 * Finds the newest checkpoint whose tree holds the event, a cosigned one first. With it, a proof needs no new
 * signature.
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
