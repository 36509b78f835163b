import { account } from "./account.ts";
import { backups } from "./backups.ts";
import { campaigns } from "./campaigns.ts";
import { clicks } from "./clicks.ts";
import { contacts } from "./contacts.ts";
import { conversions } from "./conversion-counts.ts";
import { deliveries } from "./deliveries.ts";
import { inbox } from "./inbox-reading-position.ts";
import { links } from "./links.ts";
import { news } from "./news.ts";
import type { Projection } from "./projection.ts";
import { quota } from "./quota.ts";
import { referrers } from "./messages-by-link.ts";
import { restores } from "./restores.ts";
import { canRewindContacts, rewindContacts } from "./rewind-contacts.ts";
import { results } from "./message-outcomes-and-reactions.ts";
import { rewindResults } from "./rewind-results.ts";
import { run } from "./current-run.ts";
import { runs } from "./runs.ts";
import { signals } from "./incoming-message-stream-state.ts";
import { sources } from "./recipient-source-cursors.ts";
import { stats } from "./message-totals.ts";
import { suspected } from "./clicks-suspected-as-networks-own.ts";
import { tokens } from "./token-use.ts";
import { timeline } from "./message-outcomes-by-quarter-hour.ts";
import { visits } from "./link-clicks-by-day.ts";

/** All projections. A new projection is added here and nowhere else. */
export const projections = {
  stats,
  timeline,
  run,
  runs,
  quota,
  contacts,
  inbox,
  signals,
  sources,
  account,
  restores,
  backups,
  campaigns,
  results,
  deliveries,
  clicks,
  suspected,
  referrers,
  links,
  visits,
  conversions,
  tokens,
  news,
};

export type ProjectionName = keyof typeof projections;
export type StateOf<Name extends ProjectionName> =
  (typeof projections)[Name] extends Projection<infer State> ? State : never;

/** The states of some projections; {@link States} has those of all. */
export type SomeStates<Name extends ProjectionName> = { [One in Name]: StateOf<One> };
export type States = SomeStates<ProjectionName>;

export const PROJECTION_NAMES = Object.keys(projections) as readonly ProjectionName[];

/** Returns a projection whose state is opaque, for code that treats all projections alike. */
export function projectionOf(name: ProjectionName): Projection<unknown> {
  return projections[name];
}

/**
 * Restores, in steps, the state as it was after the event at `position`, from the present state `now`. The caller may
 * fold events into `now` between two steps. Returns undefined if the state no longer keeps changes that the rewind
 * needs.
 */
export type Rewind<State> = (now: State, position: number) => Generator<void, State | undefined, void>;

/**
 * Rewinds of projections whose state is large and changes little. For these, a rewind is faster than opening a snapshot
 * of that time.
 */
const rewinds: { readonly [Name in ProjectionName]?: Rewind<StateOf<Name>> } = {
  contacts: rewindContacts,
  results: rewindResults,
};

/**
 * Returns the function that restores past states of a projection from its present state; undefined if they have to be
 * folded from the log.
 */
export function rewindOf(name: ProjectionName): Rewind<unknown> | undefined {
  return rewinds[name] as Rewind<unknown> | undefined;
}

/** True if the projection's state can be rewound to a position. */
export function canRewind<Name extends ProjectionName>(name: Name, now: StateOf<Name>, position: number): boolean {
  if (name === "contacts") return canRewindContacts(now as StateOf<"contacts">, position);
  return rewindOf(name) !== undefined;
}

/** Projections whose states hold personal data. */
export const PERSONAL_PROJECTIONS = [
  "contacts",
  "conversions",
  "links",
  "results",
  "run",
  "sources",
] as const satisfies ProjectionName[];
