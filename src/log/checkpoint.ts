import {
  CheckpointRefused,
  contradictionOf,
  createLogTree,
  openCheckpoint,
  signCheckpoint,
  type Checkpoint,
  type EventStore,
  type Head,
  type LogTree,
  type SigningKey,
} from "eventstore-lite";
import type { DataOf, Event } from "../../events/catalog.ts";
import { isoTime, type Clock } from "../platform/clock.ts";
import type { CheckpointStore } from "./checkpoint-store.ts";

/** The name of a log in its checkpoints: its id is made with it, so that no two logs share a name. */
export function formatOrigin(store: { readonly id: string }): string {
  return `reachlog/${store.id}`;
}

/** The log's signed checkpoint as of that head: it binds the end of the chain and the root of the Merkle tree. */
export async function signHead(store: EventStore<Event>, head: Head, key: SigningKey, clock: Clock): Promise<string> {
  return signChain(store, head, key, clock, { root: await readRoot(createLogTree(store), head.position) });
}

/** The same without a root: of a log that has no tree yet, or no longer holds the head. */
export function signChain(
  store: EventStore<Event>,
  { position, hash }: Head,
  key: SigningKey,
  clock: Clock,
  tree: Pick<Checkpoint, "root"> = {},
): string {
  return signCheckpoint({ origin: formatOrigin(store), position, hash, ...tree, time: isoTime(clock()) }, key);
}

async function readRoot(tree: LogTree, size: number): Promise<string> {
  return Buffer.from(await tree.at(size).root()).toString("hex");
}

/** True: the log's events have another root. Stored tiles may be wrong where the log is right: they are made again. */
export async function deniesRoot(tree: LogTree, { position, root }: Checkpoint): Promise<boolean> {
  if (root === undefined || (await readRoot(tree, position)) === root) return false;
  await tree.forget();
  return (await readRoot(tree, position)) !== root;
}

/** How the log denies a checkpoint, as a sentence and for the event that accepts it. */
export interface Loss {
  readonly sentence: string;
  readonly newEvents: Omit<DataOf<"LogLossAccepted">, "found_position" | "found_hash">;
}

/** Compares the log with a checkpoint whose signature was found good. `what` names the checkpoint in the sentence. */
export async function contradict(
  store: EventStore<Event>,
  checkpoint: Checkpoint,
  what: string,
): Promise<Loss | undefined> {
  const contradiction = await contradictionOf(store, formatOrigin(store), checkpoint);
  if (contradiction === undefined) return undefined;
  const expected = { expected_position: checkpoint.position, expected_hash: checkpoint.hash };
  const { kind, position } = contradiction;
  if (kind === "other-log") {
    const { position: end } = await store.head();
    const orCut = checkpoint.position > end ? " (or an import of it that lacks its end)" : "";
    const sentence = `${what} is of another log, ${checkpoint.origin}, and this is ${formatOrigin(store)}${orCut}`;
    return { sentence, newEvents: { reason: "other_log", ...expected } };
  }
  if (kind === "lost-tail") {
    return {
      sentence: `the log ends at position ${position}, but ${what} knew ${checkpoint.position} events: all from position ${position + 1} on are lost`,
      newEvents: { reason: "lost_tail", ...expected },
    };
  }
  return {
    sentence: `the log holds another history than ${what} knew: it was altered at position ${position} or before`,
    newEvents: { reason: "other_history", ...expected },
  };
}

/**
 * What the log denies of its checkpoint: that the log holds its position with its hash, that the
 * chain is whole from there on. Undefined when all is well, or when there is no checkpoint yet.
 *
 * The service writes one every few seconds, so that little is left to verify after it, also when it was killed.
 */
export async function findLoss(
  store: EventStore<Event>,
  checkpoints: CheckpointStore,
  { publicKey }: SigningKey,
): Promise<Loss | undefined> {
  let checkpoint: Checkpoint;
  try {
    const note = await checkpoints.read();
    if (note === undefined) return undefined;
    checkpoint = openCheckpoint(note, publicKey);
  } catch (fault) {
    if (!(fault instanceof CheckpointRefused)) throw fault;
    return { sentence: `${checkpoints.checkpoint}: ${fault.message}`, newEvents: { reason: "unknown" } };
  }
  // That of an empty log knew nothing, and another may have been imported in its place.
  const denied =
    checkpoint.position === 0
      ? undefined
      : await contradict(store, checkpoint, `the checkpoint ${checkpoints.checkpoint}`);
  return denied ?? (await findBreak(store, checkpoint));
}

async function findBreak(store: EventStore<Event>, { position, hash }: Checkpoint): Promise<Loss | undefined> {
  const { fault } = await store.verify({ from: position + 1 });
  if (fault === undefined) return undefined;
  return {
    sentence: `the chain is broken at position ${fault.position}: ${fault.reason}`,
    newEvents: {
      reason: "broken_chain",
      expected_position: position,
      expected_hash: hash,
      broken_position: fault.position,
    },
  };
}
