import { readFileSync } from "node:fs";
import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { msOf } from "../../projections/time.ts";
import type { Clock } from "../platform/clock.ts";
import type { Projector } from "../projector/projector.ts";
import type { PastStates } from "../projector/past-states.ts";
import { renderPage } from "./document.tsx";
import { notReadyPage } from "./pages/error-page.tsx";
import { createPastPages } from "./past.ts";
import type { ConsoleSettings, Live, Made, ConsolePage, View } from "./view.ts";

export interface ConsoleSources {
  readonly store: EventStore<Event>;
  readonly projector: Projector;
  readonly past: PastStates;
  readonly live: Live;
  readonly settings: ConsoleSettings;
  readonly clock: Clock;
}

/** What a browser asks of a page, and what it may do there. */
export type Visit = Pick<View, "parameters" | "query" | "formToken" | "notice">;

/** A page as HTML. `missing`: it says that the log knows nothing of this name; `not_ready`: it says that the moment asked for is not; `no_moment`: it is of now and says why. */
export interface RenderedPage {
  readonly outcome: "shown" | "missing" | "not_ready" | "no_moment";
  readonly text: string;
}

export type Console = ReturnType<typeof createConsole>;

export function createConsole({ store, projector, past, live, settings, clock }: ConsoleSources) {
  const makePast = createPastPages(past);
  // A clock that was set back does not bring back yesterday's quota.
  const nowIn = (time: string | undefined): number => Math.max(clock(), time === undefined ? 0 : msOf(time));

  const renderNow = async (page: ConsolePage, visit: Visit): Promise<RenderedPage | undefined> => {
    const { position, time } = projector;
    const state: View["state"] = (name) => projector.state(name);
    const moment = { state, position, time, now: nowIn(time), live, asOf: undefined, head: position };
    return rendered(await page({ ...visit, ...moment, store, settings }));
  };

  const renderPast = async (page: ConsolePage, visit: Visit, asOf: string): Promise<RenderedPage | undefined> => {
    const present = nowIn(projector.time);
    const made = await makePast(page, { ...visit, store, settings, head: projector.position, asOf, present });
    switch (made.outcome) {
      case "shown":
        return rendered(made.page);
      case "not_ready":
        return { outcome: "not_ready", text: renderPage(notReadyPage(visit.query)) };
      case "no_moment": {
        const now = await renderNow(page, { ...visit, notice: { text: made.why, isFault: true } });
        return now && { outcome: "no_moment", text: now.text };
      }
    }
  };

  return {
    /** Undefined: there is nothing at the address. `as_of` of its query is the moment that the page is of. */
    async render(page: ConsolePage, visit: Visit): Promise<RenderedPage | undefined> {
      const asOf = visit.query.get("as_of") ?? "";
      return asOf === "" ? renderNow(page, visit) : renderPast(page, visit, asOf);
    },
  };
}

function rendered(made: Made): RenderedPage | undefined {
  if (made === undefined) return undefined;
  return "missing" in made
    ? { outcome: "missing", text: renderPage(made.missing) }
    : { outcome: "shown", text: renderPage(made) };
}

export interface Asset {
  /** Media type of its text, which is UTF-8. */
  readonly type: string;
  readonly body: string;
}

/** What the pages load; all of it comes from here. */
export const ASSETS: Readonly<Record<"/console.css" | "/console.js" | "/idiomorph.js", Asset>> = {
  "/console.css": { type: "text/css", body: readText(new URL("./console.css", import.meta.url)) },
  "/console.js": { type: "text/javascript", body: readText(new URL("./console.js", import.meta.url)) },
  "/idiomorph.js": {
    type: "text/javascript",
    body: readText(new URL(import.meta.resolve("idiomorph/dist/idiomorph.esm.js"))),
  },
};

function readText(file: URL): string {
  return readFileSync(file, "utf8");
}
