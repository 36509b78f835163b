import { readFileSync } from "node:fs";
import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { msOf } from "../../projections/time.ts";
import type { Clock } from "../platform/clock.ts";
import type { Projector } from "../projector/projector.ts";
import type { PastStates } from "../projector/past-states.ts";
import { parseMoment, placeOf, type Place } from "../projector/moment.ts";
import { ServiceError } from "../platform/service-error.ts";
import { renderPage } from "./document.tsx";
import { keepMoment } from "./keep-moment.ts";
import { notReadyPage } from "./not-ready.tsx";
import type { ConsoleSettings, Page, View } from "./view.ts";

export interface ConsoleSources {
  readonly store: EventStore<Event>;
  readonly projector: Projector;
  readonly past: PastStates;
  readonly circuit: View["circuit"];
  readonly settings: ConsoleSettings;
  readonly clock: Clock;
}

/** What a browser asks of a page, and what it may do there. */
export type Visit = Pick<View, "parameters" | "query" | "formToken" | "notice">;

/** A page as HTML. `not_ready`: it says that the moment asked for is not; `no_moment`: it is of now and says why. */
export interface Rendered {
  readonly outcome: "shown" | "not_ready" | "no_moment";
  readonly text: string;
}

export interface Console {
  /** Undefined: there is nothing at the address. `as_of` of its query is the moment that the page is of. */
  render(page: Page, visit: Visit): Promise<Rendered | undefined>;
}

/** What all moments have in common. */
type Moments = Pick<View, "store" | "settings" | "head">;

/** A moment as a page is made of it; a text: why there is none; undefined: not ready. */
type PastView = Pick<View, "state" | "position" | "time" | "now"> | string | undefined;

export function createConsole({ store, projector, past, circuit, settings, clock }: ConsoleSources): Console {
  // A clock that was set back does not bring back yesterday's quota.
  const nowIn = (time: string | undefined): number => Math.max(clock(), time === undefined ? 0 : msOf(time));

  const renderNow = async (page: Page, visit: Visit): Promise<string | undefined> => {
    const { position, time } = projector;
    const state: View["state"] = (name) => projector.state(name);
    const moments: Moments = { store, settings, head: position };
    const document = await page({
      ...visit,
      ...moments,
      state,
      position,
      time,
      now: nowIn(time),
      circuit,
      asOf: undefined,
    });
    return document && renderPage(document);
  };

  const pastView = async (asOf: string): Promise<PastView> => {
    let place: Place;
    let until: Date | undefined;
    try {
      const moment = parseMoment(asOf, settings.timezone);
      ({ until } = moment);
      place = await placeOf(store, moment);
    } catch (fault) {
      if (fault instanceof ServiceError && fault.kind === "usage") return `${fault.message}.`;
      throw fault;
    }
    const { position, time } = place;
    const states = await past.at(position);
    if (states === undefined) return undefined;
    const now = nowIn(projector.time);
    const state: View["state"] = (name) => states[name];
    return { state, position, time, now: Math.min(until?.getTime() ?? (time === undefined ? now : msOf(time)), now) };
  };

  return {
    async render(page, visit) {
      const asOf = visit.query.get("as_of") ?? "";
      if (asOf === "") return shown(await renderNow(page, visit));
      const view = await pastView(asOf);
      if (view === undefined) return { outcome: "not_ready", text: renderPage(notReadyPage(visit.query)) };
      if (typeof view === "string") {
        const text = await renderNow(page, { ...visit, notice: { text: view, isFault: true } });
        return text === undefined ? undefined : { outcome: "no_moment", text };
      }
      const moments: Moments = { store, settings, head: projector.position };
      // Nothing can be done in the past.
      const document = await page({
        ...visit,
        ...moments,
        ...view,
        circuit: () => undefined,
        asOf,
        formToken: undefined,
      });
      return shown(document && renderPage(keepMoment(document, asOf)));
    },
  };
}

function shown(text: string | undefined): Rendered | undefined {
  return text === undefined ? undefined : { outcome: "shown", text };
}

export interface Asset {
  /** Media type of its text, which is UTF-8. */
  readonly type: string;
  readonly body: string;
}

/** What the pages load; all of it comes from here. */
export const ASSETS: Readonly<Record<"/console.css" | "/console.js" | "/idiomorph.js", Asset>> = {
  "/console.css": { type: "text/css", body: ownFile("console.css") },
  "/console.js": { type: "text/javascript", body: ownFile("console.js") },
  "/idiomorph.js": {
    type: "text/javascript",
    body: readFileSync(new URL(import.meta.resolve("idiomorph/dist/idiomorph.esm.js")), "utf8"),
  },
};

function ownFile(name: string): string {
  return readFileSync(new URL(name, import.meta.url), "utf8");
}
