import { readFileSync } from "node:fs";
import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { msOf } from "../../projections/time.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { findLast } from "../log/event-log.ts";
import type { Clock } from "../platform/clock.ts";
import type { Projector } from "../projector/projector.ts";
import type { PastStates } from "../projector/past-states.ts";
import type { Disclosed } from "../privacy/read-audit.ts";
import { renderPage } from "./document.tsx";
import { notReadyPage } from "./pages/error-page.tsx";
import {
  readOrReason,
  type ConsoleSettings,
  type Live,
  type LogSpan,
  type Made,
  type ConsolePage,
  type OtherPage,
  type PageReader,
  type View,
} from "./page-context.ts";
import { canRewind, rewindOf, type ProjectionName, type StateOf, type States } from "../../projections/all.ts";
import { MomentFolding } from "../projector/log-reader.ts";
import { hrefAt } from "./hrefs.ts";
import { parseMoment, findPlace, type Moment } from "../projector/parse-moment.ts";

export interface ConsoleSources {
  readonly store: EventStore<Event>;
  readonly projector: Projector;
  readonly past: PastStates;
  readonly live: Live;
  readonly settings: ConsoleSettings;
  readonly clock: Clock;
}

/** The request of a browser for a page, and its permission to act there. */
export type Visit = Pick<View, "parameters" | "query" | "formToken" | "notice" | "lastVisit">;

/** A page as HTML. */
export interface PageText {
  /**
   * `missing`: the page says that the log does not know the name. `not_ready`: it says that the requested moment is not
   * ready yet. `no_moment`: it is of now, and says why.
   */
  readonly outcome: "shown" | "missing" | "not_ready" | "no_moment";
  readonly text: string;
  readonly disclosed?: Disclosed | undefined;
}

/** A page, or the address of the page to redirect to. */
export type RenderedPage = PageText | ({ readonly outcome: "elsewhere" } & OtherPage);

export type Console = ReturnType<typeof createConsole>;

export function createConsole({ store, projector, past, live, settings, clock }: ConsoleSources) {
  const renderAt = createPastPages(past);
  // A clock that was set back does not bring back yesterday's quota.
  const nowIn = (time: string | undefined): number => Math.max(clock(), time === undefined ? 0 : msOf(time));

  const stateNow: View["stateNow"] = (name) => projector.state(name);

  const renderNow = async (page: ConsolePage, visit: Visit): Promise<RenderedPage | undefined> => {
    const { position, time } = projector;
    const now = nowIn(time);
    const verified = await findLast(store, "LogVerified", position);
    const span = await readSpan(store, now);
    const reader = toReader({ store, settings, state: stateNow, position, time }, () => now, {});
    const moment = {
      reader,
      state: stateNow,
      stateNow,
      hasNow: () => true,
      position,
      time,
      now,
      live,
      verified,
      asOf: undefined,
      span,
    };
    return rendered(await page.render({ ...visit, ...moment, past, store, settings }));
  };

  const renderPast = async (page: ConsolePage, visit: Visit, asOf: string): Promise<RenderedPage | undefined> => {
    const present = nowIn(projector.time);
    const span = await readSpan(store, present);
    const hasNow = (name: ProjectionName, position: number): boolean =>
      projector.isFolded(name) &&
      projector.position >= position &&
      (rewindOf(name) === undefined || canRewind(name, projector.state(name), position));
    const made = await renderAt(page, { ...visit, store, settings, span, stateNow, hasNow, asOf, present });
    if (made.outcome === "shown") return rendered(made.page);
    if (made.outcome === "not_ready") return { outcome: "not_ready", text: renderPage(notReadyPage(visit.query)) };
    const now = await renderNow(page, { ...visit, notice: { text: made.why, isFault: true } });
    return now !== undefined && "text" in now ? { ...now, outcome: "no_moment" } : now;
  };

  return {
    /**
     * Renders a page, as of the moment `as_of` of its query if there is one. Undefined if there is nothing at the
     * address.
     */
    async render(page: ConsolePage, visit: Visit): Promise<RenderedPage | undefined> {
      const asOf = visit.query.get("as_of") ?? "";
      return asOf === "" ? renderNow(page, visit) : renderPast(page, visit, asOf);
    },
  };
}

/** Newest runs that are searched for one that is not a dry run. */
const RUNS_READ_MAX = 20;

async function readSpan(store: EventStore<Event>, present: number): Promise<LogSpan | undefined> {
  const [first] = await Array.fromAsync(store.read({ limit: 1 }));
  if (first === undefined) return undefined;
  const runs = store.read({ types: ["RunStarted"], backwards: true, limit: RUNS_READ_MAX });
  let beforeRun: number | undefined;
  for await (const { type, data, position } of runs) {
    if (type !== "RunStarted" || data.dry_run || position === 1) continue;
    beforeRun = position - 1;
    break;
  }
  return { from: msOf(first.time), to: present, beforeRun };
}

function rendered(made: Made): RenderedPage | undefined {
  if (made === undefined) return undefined;
  if ("location" in made) return { outcome: "elsewhere", ...made };
  const { page, disclosed, isMissing = false } = "page" in made ? made : { page: made };
  return { outcome: isMissing ? "missing" : "shown", text: renderPage(page), disclosed };
}

/** The files that pages load. Pages load nothing from elsewhere. */
export const ASSETS = {
  "/console.css": readAsset("text/css", new URL("./console.css", import.meta.url)),
  "/console.js": readAsset("text/javascript", new URL("./console.js", import.meta.url)),
  "/idiomorph.js": readAsset("text/javascript", new URL(import.meta.resolve("idiomorph/dist/idiomorph.esm.js"))),
};

/** Reads a file to serve. `type` is the media type of its text, which is UTF-8. */
function readAsset(type: string, file: URL) {
  return { type, body: readFileSync(file, "utf8") };
}

/** The input of a page as of an earlier moment, except what depends on that moment. */
export interface PastVisit extends Omit<
  View,
  | "state"
  | "past"
  | "hasNow"
  | "position"
  | "time"
  | "now"
  | "asOf"
  | "live"
  | "formToken"
  | "verified"
  | "reader"
  | "reads"
> {
  readonly asOf: string;
  /** True if the present state is there, includes the position, and can be put back to it. */
  hasNow(name: ProjectionName, position: number): boolean;
  /** The present, in ms since 1970. */
  readonly present: number;
}

/** Makes pages as of earlier moments, on which nothing can be done. */
export function createPastPages(past: PastStates) {
  return async (page: ConsolePage, visit: PastVisit) => {
    const { asOf, present, hasNow, ...rest } = visit;
    const found = await readOrReason(async () => {
      const moment = parseMoment(asOf, visit.settings.timezone);
      return { ...(await findPlace(visit.store, moment)), ...moment };
    });
    if (typeof found === "string") return { outcome: "no_moment", why: `${found}.` } as const;
    const { position, time, until, to } = found;
    const asks = { ...visit, hasNow: (name: ProjectionName) => hasNow(name, position) };
    const reads = typeof page.reads === "function" ? await page.reads(asks) : page.reads;
    const states = await past.at<ProjectionName>(position, reads);
    if (states === undefined) return { outcome: "not_ready" } as const;
    const state = <Name extends ProjectionName>(name: Name): StateOf<Name> => {
      if (!(name in states)) throw new Error(`a page reads ${name}, which it does not declare`);
      return states[name];
    };
    const now = Math.min(until?.getTime() ?? (time === undefined ? present : msOf(time)), present);
    const verified = await findLast(visit.store, "LogVerified", position);
    const asked = { asOf, state, position, time, now, hasNow: asks.hasNow };
    const view = { ...rest, ...asked, past, verified, live: undefined, formToken: undefined };
    const reader = toReader(view, () => present, omitUndefined({ to, until }));
    let made: Made;
    try {
      made = await page.render({ ...view, reader });
    } catch (fault) {
      if (fault instanceof MomentFolding) return { outcome: "not_ready" } as const;
      throw fault;
    }
    const kept = made !== undefined && "location" in made ? { ...made, location: hrefAt(made.location, asOf) } : made;
    return { outcome: "shown", page: kept } as const;
  };
}

const FIGURE_EVENTS_MAX = 2_000;

/** Reads the states of the page's moment for operations. */
function toReader(
  {
    store,
    settings,
    state,
    position,
    time,
  }: Pick<View<ProjectionName>, "store" | "settings" | "state" | "position" | "time">,
  clock: Clock,
  moment: Moment,
): PageReader {
  return {
    store,
    clock,
    config: { outreach: settings },
    configured: settings.configured,
    tokens: settings.tokens,
    eventsMax: FIGURE_EVENTS_MAX,
    async at<Name extends ProjectionName>(asOf: string | undefined, ...names: readonly Name[]) {
      if (asOf !== undefined) throw new Error("an operation that a page asks answers for the moment of the page");
      const states = Object.fromEntries(names.map((name) => [name, state(name)])) as Pick<States, Name>;
      return { states, position, time, moment };
    },
  };
}
