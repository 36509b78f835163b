import { readFileSync } from "node:fs";
import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { msOf } from "../../projections/time.ts";
import type { Clock } from "../platform/clock.ts";
import type { Projector } from "../projector/projector.ts";
import { renderPage } from "./document.tsx";
import type { ConsoleSettings, Page, View } from "./view.ts";

export interface ConsoleSources {
  readonly store: EventStore<Event>;
  readonly projector: Projector;
  readonly settings: ConsoleSettings;
  readonly clock: Clock;
}

/** What a browser asks of a page, and what it may do there. */
export type Visit = Pick<View, "parameters" | "query" | "formToken" | "notice">;

export interface Console {
  /** The page as HTML; undefined: there is nothing at its address. */
  render(page: Page, visit: Visit): Promise<string | undefined>;
}

export function createConsole({ store, projector, settings, clock }: ConsoleSources): Console {
  return {
    async render(page, visit) {
      const { position, time } = projector;
      // A clock that was set back does not bring back yesterday's quota.
      const now = Math.max(clock(), time === undefined ? 0 : msOf(time));
      const state: View["state"] = (name) => projector.state(name);
      const document = await page({ ...visit, store, state, position, time, now, settings });
      return document && renderPage(document);
    },
  };
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
