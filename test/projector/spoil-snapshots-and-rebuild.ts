import { openSqliteStore, type EventStore } from "eventstore-lite";
import { codec, type Event } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES, projectionOf, type ProjectionName, type States } from "../../projections/all.ts";
import { encodeState } from "../../projections/encode-state.ts";
import { rebuild, type RebuildOptions, type Rebuilt } from "../../src/log/rebuild-projections.ts";
import { foldLog } from "../harness/fold-log.ts";
import { createLogger, type Logger } from "../../src/platform/logger.ts";
import { startProjector } from "../../src/projector/projector.ts";
import { unpackState } from "../../src/projector/past-snapshots.ts";
import { writeMixedLog } from "../bench/write-mixed-log.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";

export function open(file: string): Promise<EventStore<Event>> {
  return openSqliteStore({ file, codec });
}

/** Writes a log with events of nearly all types, and the snapshots of a service that ran on it. Returns its file. */
export async function servedLog(events = 2_000): Promise<string> {
  const file = newLogFile();
  await writeMixedLog(file, events);
  await using store = await open(file);
  await using _projector = await startProjector(store);
  return file;
}

/** Corrupts a stored snapshot, as a defect of a service would. */
export async function spoil<Name extends ProjectionName>(
  store: EventStore<Event>,
  name: Name,
  change: (state: States[Name]) => void,
): Promise<void> {
  const snapshot = await store.snapshots.load(name);
  if (snapshot === undefined) throw new Error(`there is no snapshot of ${name}`);
  const state = (await unpackState(snapshot.state)) as States[Name];
  change(state);
  await store.snapshots.save(name, { ...snapshot, state: encodeState(state) });
}

/** Rebuilds as the command does, without reports of progress. */
export function rebuildAll(
  store: EventStore<Event>,
  options: Partial<RebuildOptions> = {},
  names: readonly ProjectionName[] = PROJECTION_NAMES,
): Promise<readonly Rebuilt[] | undefined> {
  const metadata = { caller: "test" };
  const quiet = { restart: false, metadata, signal: new AbortController().signal, onBegin() {}, onProgress() {} };
  return rebuild(store, names, { ...quiet, ...options });
}

/** Folds the log and returns the states as text, which includes the order of the Maps. */
export async function truth(store: EventStore<Event>, to?: number): Promise<Record<string, string>> {
  const { states } = await foldLog(store, PROJECTION_NAMES, to === undefined ? {} : { to });
  return textsOf((name) => states[name]);
}

export function textsOf(state: (name: ProjectionName) => unknown): Record<string, string> {
  return Object.fromEntries(PROJECTION_NAMES.map((name) => [name, encodeState(state(name))]));
}

/** Returns the stored snapshots of all projections as text, which includes the order of the Maps; empty if missing. */
export async function storedTexts(store: EventStore<Event>): Promise<Record<string, string>> {
  const texts: Record<string, string> = {};
  for (const name of PROJECTION_NAMES) {
    const snapshot = await store.snapshots.load(name);
    texts[name] = snapshot === undefined ? "" : encodeState(await unpackState(snapshot.state));
  }
  return texts;
}

/** A snapshot at a position; `version` defaults to that of the code. */
export function snapshotOf(name: ProjectionName, position: number, state: unknown, version?: number) {
  return { version: version ?? projectionOf(name).version, position, state: encodeState(state) };
}

/** Creates a logger that collects its lines. */
export function recordingLog(): Logger & { readonly lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger("debug", (line) => lines.push(JSON.parse(line) as Record<string, unknown>), Date.now);
  return { ...logger, lines };
}
