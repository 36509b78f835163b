import { isStoreError, type SnapshotEntry, type Snapshot } from "eventstore-lite";
import type { Recorded, LogStore } from "../../events/event-types-and-codec.ts";
import {
  canRewind,
  PERSONAL_PROJECTIONS,
  projectionOf,
  type ProjectionName,
  PROJECTION_NAMES,
  type StateOf,
} from "../../projections/all.ts";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { constants, createDeflateRaw, inflateRaw } from "node:zlib";
import { createStateDecoder, encodePieces } from "../../projections/encode-state.ts";
import { createTimeSlices } from "../platform/work-in-time-slices.ts";

/**
 * A past snapshot: one that is kept so that the states of a past moment near it need not be folded from the start of
 * the log.
 */
export interface Past {
  readonly projection: string;
  readonly position: number;
  /** Position of the log up to which the snapshot takes erasures and rebuilds into account. */
  readonly since: number;
}

/** Prefix of the names of past snapshots in the store. Such a name contains all that is needed to choose one. */
const PREFIX = "past/";
const NAME = /^past\/([^/]+)\/(\d+)\/(\d+)$/;

export function pastName({ projection, position, since }: Past): string {
  return `${PREFIX}${projection}/${position}/${since}`;
}

/** Parses the name of a past snapshot; undefined for another snapshot's name. */
export function parsePastName(name: string): Past | undefined {
  const [, projection, position, since] = NAME.exec(name) ?? [];
  if (projection === undefined) return undefined;
  return { projection, position: Number(position), since: Number(since) };
}

/** Number of positions between two past snapshots while a log is short. */
export const PAST_EVERY_POSITIONS = 20_000;

/**
 * Maximum number of past snapshots of one projection. In a log of 10,000,000 positions, a moment is then at most 20,000
 * behind one: less than a tenth of a second. Twice as many would halve that for twice the space.
 */
export const PAST_MAX = 512;

/** Maximum total size of the past snapshots of one projection, in bytes. If the snapshots are large, fewer are kept. */
const PAST_BYTES_MAX = 256 * 2 ** 20;

/**
 * Returns the distance between two past snapshots in a log up to `position`: `every`, doubled until they are few
 * enough.
 */
export function strideAt(position: number, every: number): number {
  let stride = every;
  while (position / stride >= PAST_MAX) stride *= 2;
  return stride;
}

/**
 * True if a snapshot of the state at `position` must be kept as a past snapshot. `last`: the position of the last one.
 */
export function isDue<Name extends ProjectionName>(
  name: Name,
  state: StateOf<Name>,
  { position, last, every }: { readonly position: number; readonly last: number; readonly every: number },
): boolean {
  const stride = strideAt(position, every);
  const isFirst = Math.floor(position / stride) > Math.floor(last / stride);
  // If the present state can be rewound to the last past snapshot, it can also be rewound to all moments after it, so
  // no other snapshot is needed.
  return isFirst && !canRewind(name, state, last);
}

/**
 * Returns the past snapshots to remove, because they are closer than the stride or together too large. The input is in
 * the order of the log.
 */
function surplus(entries: readonly SnapshotEntry[], every: number): readonly SnapshotEntry[] {
  let stride = strideAt(entries.at(-1)?.position ?? 0, every);
  for (;;) {
    const kept = firstOfEach(stride, entries);
    const bytes = [...kept].reduce((sum, entry) => sum + entry.bytes, 0);
    if (kept.size <= 1 || bytes <= PAST_BYTES_MAX) return entries.filter((entry) => !kept.has(entry));
    stride *= 2;
  }
}

function firstOfEach(stride: number, entries: readonly SnapshotEntry[]): ReadonlySet<SnapshotEntry> {
  let last = 0;
  return new Set(
    entries.filter(({ position }) => {
      const slot = Math.floor(position / stride);
      if (slot === last) return false;
      last = slot;
      return true;
    }),
  );
}

/** Lists the past snapshots of one projection, in the order of the log. */
export async function listPast(store: LogStore, name: ProjectionName): Promise<readonly SnapshotEntry[]> {
  const entries = await store.snapshots.list(`${PREFIX}${name}/`);
  return entries.toSorted((one, other) => one.position - other.position);
}

/** Removes a projection's past snapshots that are void, and then those that are too many. */
export async function thinPast(store: LogStore, name: ProjectionName, every: number): Promise<void> {
  const voided = (await voidedUpTo(store)).get(name) ?? 0;
  const entries = await listPast(store, name);
  const { valid = [], invalid = [] } = Object.groupBy(entries, (entry) =>
    isCurrent(entry, name, voided) ? "valid" : "invalid",
  );
  await store.snapshots.remove([...invalid, ...surplus(valid, every)].map((entry) => entry.name));
}

/**
 * True if a snapshot has the projection's present version, and is newer than all erasures and rebuilds that make older
 * ones void.
 */
export function isCurrent(entry: SnapshotEntry, name: ProjectionName, voided: number): boolean {
  const since = parsePastName(entry.name)?.since ?? entry.position;
  return entry.version === projectionOf(name).version && since >= voided;
}

/** Removes all past snapshots of every projection. */
export async function removePast(store: LogStore): Promise<void> {
  const entries = await store.snapshots.list(PREFIX);
  await store.snapshots.remove(entries.map(({ name }) => name));
}

/**
 * Returns the position of the last erasure; 0 if there is none. Reading that event drops the erased recipient's keys
 * from memory.
 */
export async function lastForgotten(store: LogStore): Promise<number> {
  for await (const { position } of store.read({ types: ["PersonForgotten"], backwards: true, limit: 1 })) {
    return position;
  }
  return 0;
}

/**
 * Returns, for each projection, the position of its last rebuild or of the last erasure of a recipient that it may
 * hold. Older snapshots are not used.
 */
export async function voidedUpTo(store: LogStore): Promise<ReadonlyMap<string, number>> {
  const forgotten = await lastForgotten(store);
  const voided = new Map<string, number>(PERSONAL_PROJECTIONS.map((name) => [name, forgotten]));
  for await (const { type, data, position } of store.read({ types: ["ProjectionRebuilt"] })) {
    if (type === "ProjectionRebuilt") voided.set(data.projection, Math.max(voided.get(data.projection) ?? 0, position));
  }
  return voided;
}

/** Loads the snapshot of that name; undefined if there is none, or if it includes events that the log has lost. */
export async function loadFitting(store: LogStore, name: string): Promise<Snapshot | undefined> {
  try {
    return await store.snapshots.load(name);
  } catch (fault) {
    if (isStoreError(fault, "snapshot_ahead")) return undefined;
    throw fault;
  }
}

/** Returns the name under which a rebuilt state is stored until all instances have loaded it. */
export function rebuiltName(name: ProjectionName): string {
  return `rebuilt/${name}`;
}

/**
 * Loads the projection's state that was rebuilt last. Undefined if none is stored, if another version of the projection
 * made it, or if it already includes `event`: a later event of this type then reports it.
 */
export async function loadRebuilt(
  store: LogStore,
  name: ProjectionName,
  event: Recorded<"ProjectionRebuilt">,
): Promise<{ readonly position: number; readonly state: unknown } | undefined> {
  const { version } = projectionOf(name);
  const snapshot = await loadFitting(store, rebuiltName(name));
  if (snapshot?.version !== version || snapshot.position >= event.position) return undefined;
  return { position: snapshot.position, state: await unpackState(snapshot.state) };
}

/** Removes all snapshots of all projections, so that the next start folds the whole log. */
export async function forgetSnapshots(store: LogStore): Promise<void> {
  await removePast(store);
  await store.snapshots.remove(PROJECTION_NAMES.flatMap((name) => [name, rebuiltName(name)]));
}

export interface PackOptions {
  /** The encoder calls this once it no longer reads the state, which may then change. */
  readonly onEncoded?: () => void;
  /** Time for which the state is encoded before other work has its turn, in ms. */
  readonly sliceMs?: number | undefined;
}

/**
 * Encodes a state as a snapshot stores it: its text, compressed in another thread to a tenth. Works in time slices,
 * because a list of 50,000 recipients takes a tenth of a second.
 */
export async function packState(state: unknown, options: PackOptions = {}): Promise<string> {
  const deflate = createDeflateRaw({ level: constants.Z_BEST_SPEED });
  const [packed] = await Promise.all([buffer(deflate), pipeline(encodeInTimeSlices(state, options), deflate)]);
  return packed.toString("base64");
}

/**
 * Decodes a snapshot's state: the reverse of {@link packState}. Also reads uncompressed text, as older versions stored
 * it.
 */
export async function unpackState(stored: string): Promise<unknown> {
  return decodeInTimeSlices(await inflateState(stored));
}

/** Returns the text of a state, decompressed in another thread. */
export async function inflateState(stored: string): Promise<Buffer> {
  if (stored.startsWith("{")) return Buffer.from(stored);
  return inflate(Buffer.from(stored, "base64"), { chunkSize: INFLATED_CHUNK_BYTES });
}

/**
 * Size of the pieces in which a state is decompressed. The default of Node, 16 KiB, would split a large state into
 * about a thousand pieces, which must then be joined.
 */
const INFLATED_CHUNK_BYTES = 2 ** 20;

export async function decodeInTimeSlices(text: Buffer): Promise<unknown> {
  const decoder = createStateDecoder();
  const slices = createTimeSlices();
  for (let from = 0; from <= text.length;) {
    const at = text.indexOf("\n", from);
    const end = at === -1 ? text.length : at;
    decoder.add(text.toString("utf8", from, end));
    from = end + 1;
    if (slices.isOver()) await slices.next();
  }
  return decoder.state();
}

async function* encodeInTimeSlices(
  state: unknown,
  { onEncoded, sliceMs }: PackOptions,
): AsyncGenerator<string, void, void> {
  let text = "";
  const slices = createTimeSlices(sliceMs);
  for (const piece of encodePieces(state)) {
    text += piece;
    if (!slices.isOver()) continue;
    yield text;
    text = "";
    await slices.next();
  }
  onEncoded?.();
  yield text;
}

const inflate = promisify(inflateRaw);
