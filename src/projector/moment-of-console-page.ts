// Finds the moment that a console page shows: now, or the earlier time that its reader chose.
import type { Query } from "eventstore-lite";
import type { LogStore, Recorded } from "../../events/event-types-and-codec.ts";
import { canRewind, rewindOf, type ProjectionName, type StateOf, type States } from "../../projections/all.ts";
import { findNumberedRun } from "../../projections/runs.ts";
import { msOf } from "../../projections/parse-log-times.ts";
import type { Clock } from "../platform/clock-ids-and-timers.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { readOrReason } from "../platform/service-error.ts";
import { MomentFolding, type LogReader } from "./operation-states-as-of.ts";
import { readMomentWords } from "./parse-moment-words.ts";
import { findPlace, parseMoment, type Moment } from "./parse-moment.ts";
import type { PastStates } from "./past-states.ts";

/** The log and the projections as of one moment, for functions that both console pages and operations call. */
export interface ReadMoment<Reads extends ProjectionName = never> {
  readonly store: LogStore;
  /**
   * Exists for the compiler only and has no value: by it, the compiler refuses to pass a moment to a function that
   * reads projections which the page does not declare.
   */
  readonly reads?: (name: Reads) => void;
  /** Returns the state of a projection, which the page must declare. */
  state<Name extends Reads>(name: Name): StateOf<Name>;
  /** Returns the present state of a projection, also for a page of an earlier moment. */
  readonly stateNow: PageMoment<ProjectionName>["state"];
  /**
   * True if the projection has folded all events up to the page's moment. If the projection has a rewind, its state
   * must also still be able to go back to that moment.
   */
  hasNow(name: ProjectionName): boolean;
  /** Position of the last event that counts for the page; 0 if there is none. */
  readonly position: number;
  /** Moment that the page is about, in ms since 1970. */
  readonly now: number;
  /** Earlier moment of the page, as the operator entered it. Undefined if the page shows the present. */
  readonly asOf: string | undefined;
  /** The newest verification of the log. Undefined if there is none up to `position`. */
  readonly verified: Recorded<"LogVerified"> | undefined;
}

/** The log and the projections as of one moment, as a page shows them. */
export interface PageMoment<Reads extends ProjectionName = never> extends ReadMoment<Reads> {
  /** Access to the states as of moments other than the page's. */
  readonly past: PastStates;
  /** Reader for operations, at the moment of the page. */
  readonly reader: LogReader;
  /** Time of the last event that counts for the page, ISO 8601. */
  readonly time: string | undefined;
  /** The time from the first event to the present. Undefined if the log is empty. */
  readonly span: LogSpan | undefined;
}

/** Span of time in which a reader may choose a moment; in ms since 1970. */
interface LogSpan {
  readonly from: number;
  readonly to: number;
  /** The newest run that was not a dry run, and the position before it. Undefined if there is none. */
  readonly newestRun: { readonly number: number; readonly before: number; readonly startedAt: string } | undefined;
}

/**
 * The part of a page's moment that is known before states are folded. A page may decide by it which states it reads.
 */
export interface UnfoldedMoment {
  readonly store: LogStore;
  hasNow(name: ProjectionName): boolean;
}

/** The present states of projections, such as those of a projector. */
interface PresentStates {
  readonly position: number;
  readonly time: string | undefined;
  isFolded(name: ProjectionName): boolean;
  state<Name extends ProjectionName>(name: Name): StateOf<Name>;
}

interface MomentSources {
  readonly store: LogStore;
  readonly projector: PresentStates;
  readonly past: PastStates;
  readonly clock: Clock;
  /** IANA name; days and local times are of this time zone. */
  readonly timezone: string;
}

export type PageMoments = ReturnType<typeof createPageMoments>;

/** Creates the function that finds the moment for a page. */
export function createPageMoments({ store, projector, past, clock, timezone }: MomentSources) {
  // Returns the moment of a page, which is not before the newest event: a clock that was set back does not bring back
  // yesterday's quota.
  const nowIn = (time: string | undefined): number => Math.max(clock(), time === undefined ? 0 : msOf(time));
  const stateNow: PageMoment["stateNow"] = (name) => projector.state(name);
  const hasNow = (name: ProjectionName, position: number): boolean =>
    projector.isFolded(name) &&
    projector.position >= position &&
    (rewindOf(name) === undefined || canRewind(name, projector.state(name), position));

  const newestRun = (): LogSpan["newestRun"] => {
    if (!projector.isFolded("runs")) return undefined;
    let newest: LogSpan["newestRun"];
    for (const { number, position, started_at } of projector.state("runs").started.values()) {
      if (number !== null && position > 1) newest = { number, before: position - 1, startedAt: started_at };
    }
    return newest;
  };

  return {
    async now(): Promise<PageMoment<ProjectionName>> {
      const { position, time } = projector;
      const now = nowIn(time);
      const known = { store, past, stateNow, state: stateNow, hasNow: () => true, position, time, now };
      const frame = await readFrame(store, position, now, newestRun());
      return { ...known, ...frame, asOf: undefined, reader: toReader(known, now, {}) };
    },
    /**
     * Finds the moment of the log that a reader named by `asOf`, and folds the projections that `findReads` chooses up
     * to it.
     */
    async at(
      asOf: string,
      findReads: (moment: UnfoldedMoment) => readonly ProjectionName[] | Promise<readonly ProjectionName[]>,
    ): Promise<FoundMoment> {
      const present = nowIn(projector.time);
      const found = await readOrReason(async () => {
        const moment = parseMoment(asOf, timezone);
        return { ...(await findPlace(store, moment)), ...moment };
      });
      if (typeof found === "string") return { outcome: "no_moment", why: `${found}.` };
      const { position, time, until, to } = found;
      const unfolded = { store, hasNow: (name: ProjectionName) => hasNow(name, position) };
      const states: Partial<States> | undefined = await past.at(position, await findReads(unfolded));
      if (states === undefined) return { outcome: "not_ready" };
      const state = <Name extends ProjectionName>(name: Name): StateOf<Name> => {
        // The page did not request this state as of the earlier moment, because the present state could be rewound to
        // it. An erasure since then has made the rewind impossible, so the page has to be loaded again.
        if (!(name in states) && rewindOf(name) !== undefined) throw new MomentFolding(position);
        if (!(name in states)) throw new Error(`a page reads ${name}, which it does not declare`);
        return states[name] as StateOf<Name>;
      };
      const now = Math.min(until?.getTime() ?? (time === undefined ? present : msOf(time)), present);
      const known = { ...unfolded, past, stateNow, state, position, time, now };
      const reader = toReader(known, present, omitUndefined({ to, until }));
      return {
        outcome: "found",
        moment: { ...known, ...(await readFrame(store, position, present, newestRun())), asOf, reader },
      };
    },
    /**
     * Returns the text as `as_of` accepts it: a phrase such as `run 35` becomes a moment, the present becomes an empty
     * text. Any other text is returned unchanged.
     */
    findMeant(text: string, language: string): string {
      const meant = readMomentWords(text, { language, timezone, now: nowIn(projector.time) });
      if (meant === undefined || typeof meant === "string") return meant ?? text;
      if (!projector.isFolded("runs")) return text;
      const runs = projector.state("runs");
      const run = runs.started.get(findNumberedRun(runs, meant.run) ?? "");
      return run === undefined ? text : String(run.end?.position ?? run.position);
    },
  };
}

/**
 * Result of looking for a page's moment. `not_ready`: its states are being folded. `no_moment`: the text names no
 * moment, and `why` says what is wrong.
 */
type FoundMoment =
  | { readonly outcome: "found"; readonly moment: PageMoment<ProjectionName> }
  | { readonly outcome: "not_ready" }
  | { readonly outcome: "no_moment"; readonly why: string };

/** True if a page could not be made because a state that it needs is still being folded. */
export function isNotFolded(fault: unknown): boolean {
  return fault instanceof MomentFolding;
}

/** Reads the newest events that match a query, up to the page's moment, newest first. */
export async function newestEvents(
  { store, position }: ReadMoment,
  query: Omit<Query, "backwards">,
): Promise<readonly Recorded[]> {
  const to = Math.min(query.to ?? position, position);
  return to < 1 ? [] : Array.fromAsync(store.read({ ...query, to, backwards: true }));
}

/** Reads what the frame around each page shows about the log. `present`: the time now, in ms since 1970. */
async function readFrame(store: LogStore, position: number, present: number, newestRun: LogSpan["newestRun"]) {
  const verifications = store.read({ types: ["LogVerified"], to: position, backwards: true, limit: 1 });
  const [newest] = position < 1 ? [] : await Array.fromAsync(verifications);
  const verified = newest as Recorded<"LogVerified"> | undefined;
  const [first] = await Array.fromAsync(store.read({ limit: 1 }));
  return { verified, span: first && { from: msOf(first.time), to: present, newestRun } };
}

interface KnownStates {
  readonly store: LogStore;
  state<Name extends ProjectionName>(name: Name): StateOf<Name>;
  readonly position: number;
  readonly time: string | undefined;
}

/**
 * Creates the reader through which operations read the log's states when a page calls them. It answers only for the
 * page's moment, and its clock always returns `now`.
 */
function toReader({ store, state, position, time }: KnownStates, now: number, moment: Moment): LogReader {
  return {
    store,
    clock: () => now,
    async at<Name extends ProjectionName>(asOf: string | undefined, ...names: readonly Name[]) {
      if (asOf !== undefined) throw new Error("an operation that a page asks answers for the moment of the page");
      const states = Object.fromEntries(names.map((name) => [name, state(name)])) as Pick<States, Name>;
      return { states, position, time, moment };
    },
  };
}
