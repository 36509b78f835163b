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
import { cloneElement, type ComponentChildren, type FunctionComponent, h, isValidElement, type VNode } from "preact";
import { canRewind, rewindOf, type ProjectionName, type StateOf, type States } from "../../projections/all.ts";
import { createStates } from "../../projections/states.ts";
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
  /**
   * The projections that each page has read so far. Most pages do not need the list of recipients, which takes long to
   * open.
   */
  const readBy: ReadBy = new Map();
  const makePast = createPastPages(past, readBy);
  // A clock that was set back does not bring back yesterday's quota.
  const nowIn = (time: string | undefined): number => Math.max(clock(), time === undefined ? 0 : msOf(time));

  const stateNow: View["state"] = (name) => projector.state(name);

  const renderNow = async (page: ConsolePage, visit: Visit): Promise<RenderedPage | undefined> => {
    const { position, time } = projector;
    const read = namesReadBy(readBy, page);
    const state: View["state"] = (name) => {
      read.add(name);
      return stateNow(name);
    };
    const now = nowIn(time);
    const verified = await findLast(store, "LogVerified", position);
    const span = await readSpan(store, now);
    const reader = toReader({ store, settings, state, position, time }, () => now, {});
    const moment = {
      reader,
      state,
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
    return rendered(await page({ ...visit, ...moment, past, store, settings }));
  };

  const renderPast = async (page: ConsolePage, visit: Visit, asOf: string): Promise<RenderedPage | undefined> => {
    const present = nowIn(projector.time);
    const span = await readSpan(store, present);
    const hasNow = (name: ProjectionName, position: number): boolean =>
      projector.isFolded(name) &&
      projector.position >= position &&
      (rewindOf(name) === undefined || canRewind(name, projector.state(name), position));
    const made = await makePast(page, { ...visit, store, settings, span, stateNow, hasNow, asOf, present });
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
  "state" | "past" | "hasNow" | "position" | "time" | "now" | "asOf" | "live" | "formToken" | "verified" | "reader"
> {
  readonly asOf: string;
  /** True if the present state is there, includes the position, and can be put back to it. */
  hasNow(name: ProjectionName, position: number): boolean;
  /** The present, in ms since 1970. */
  readonly present: number;
}

type ReadBy = Map<ConsolePage, Set<ProjectionName>>;

function namesReadBy(readBy: ReadBy, page: ConsolePage): Set<ProjectionName> {
  const read = readBy.get(page) ?? new Set();
  readBy.set(page, read);
  return read;
}

/**
 * Makes pages as of earlier moments, on which nothing can be done. `readBy` holds the projections that each page has
 * read so far, also as of now.
 */
export function createPastPages(past: PastStates, readBy: ReadBy = new Map()) {
  return async (page: ConsolePage, visit: PastVisit) => {
    const { asOf, present, hasNow, ...rest } = visit;
    const found = await readOrReason(async () => {
      const moment = parseMoment(asOf, visit.settings.timezone);
      return { ...(await findPlace(visit.store, moment)), ...moment };
    });
    if (typeof found === "string") return { outcome: "no_moment", why: `${found}.` } as const;
    const { position, time, until, to } = found;
    const now = Math.min(until?.getTime() ?? (time === undefined ? present : msOf(time)), present);
    const verified = await findLast(visit.store, "LogVerified", position);
    const asked = { asOf, position, time, now, hasNow: (name: ProjectionName) => hasNow(name, position) };
    const view = { ...rest, ...asked, past, verified, live: undefined, formToken: undefined };
    const read = namesReadBy(readBy, page);
    // After each attempt that lacks states, `read` names more of them.
    for (;;) {
      const states = await past.at<ProjectionName>(position, [...read]);
      if (states === undefined) return { outcome: "not_ready" } as const;
      const toPageReader = (state: View["state"]) =>
        toReader({ ...view, state }, () => present, omitUndefined({ to, until }));
      const made = await makePage(page, view, { states, read, toPageReader });
      if (made !== LACKING) return { outcome: "shown", page: made } as const;
    }
  };
}

/** `states`: those that are known; `read`: the names of all that the page has asked for. */
interface Reading {
  readonly states: Partial<States>;
  readonly read: Set<ProjectionName>;
  toPageReader(state: View["state"]): PageReader;
}

const FIGURE_EVENTS_MAX = 2_000;

/** Reads the states of the page's moment for operations. */
function toReader(
  { store, settings, state, position, time }: Pick<View, "store" | "settings" | "state" | "position" | "time">,
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
    async at<Name extends ProjectionName>(_asOf: string | undefined, ...names: readonly Name[]) {
      const states = Object.fromEntries(names.map((name) => [name, state(name)])) as Pick<States, Name>;
      return { states, position, time, moment };
    },
  };
}

const LACKING = "a state is lacking";

/**
 * Makes a page with all its components, and adds the names of the projections that it reads to `read`. Missing states
 * are empty, and the page is then discarded: one attempt finds most names, which are folded together.
 */
async function makePage(
  page: ConsolePage,
  view: Omit<View, "state" | "reader"> & { readonly asOf: string },
  { states, read, toPageReader }: Reading,
): Promise<Made | typeof LACKING> {
  let isLacking = false;
  const state = <Name extends ProjectionName>(name: Name): StateOf<Name> => {
    read.add(name);
    const found = states[name];
    if (found !== undefined) return found;
    isLacking = true;
    return createStates([name]).get(name);
  };
  try {
    const made = await page({ ...view, state, reader: toPageReader(state) });
    const kept = made === undefined ? undefined : keepMomentIn(made, view.asOf);
    return isLacking ? LACKING : kept;
  } catch (fault) {
    if (isLacking) return LACKING;
    throw fault;
  }
}

function keepMomentIn(made: Exclude<Made, undefined>, asOf: string): Made {
  if ("location" in made) return { ...made, location: hrefAt(made.location, asOf) };
  return "page" in made ? { ...made, page: keepMoment(made.page, asOf) as VNode } : (keepMoment(made, asOf) as VNode);
}

type Attributes = Readonly<Record<string, unknown>> & { readonly children?: ComponentChildren };

/**
 * Adds the shown moment to all links and forms of a page that lead to other pages, so that no page has to do it. An
 * element with `data-moment` chooses a moment itself. Components must be functions without hooks.
 */
function keepMoment(node: ComponentChildren, asOf: string): ComponentChildren {
  if (Array.isArray(node)) return node.map((one: ComponentChildren) => keepMoment(one, asOf));
  if (!isValidElement(node)) return node;
  const { type, props } = node as VNode<Attributes>;
  if (typeof type === "function") return keepMoment((type as FunctionComponent<Attributes>)(props), asOf);
  const children = keepMoment(props.children, asOf);
  if ("data-moment" in props) return cloneElement(node, {}, children);
  const { href, method } = props;
  if (type === "a" && typeof href === "string") return cloneElement(node, { href: hrefAt(href, asOf) }, children);
  if (type !== "form" || method !== "get") return cloneElement(node, {}, children);
  return cloneElement(node, {}, [children, h("input", { type: "hidden", name: "as_of", value: asOf })]);
}

/** A path of a console page; operations of the API, anchors and other sites stay unchanged. */
const PAGE = /^\/(?!\/|api\/|social\/)/;

function hrefAt<Href extends string>(href: Href, asOf: string): Href | `/${string}` {
  if (!PAGE.test(href)) return href;
  const { pathname, searchParams, hash } = new URL(href, "http://console");
  searchParams.set("as_of", asOf);
  return `/${pathname.slice(1)}?${searchParams}${hash}`;
}
