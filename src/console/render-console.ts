import { readFileSync } from "node:fs";
import { toCapital } from "../history/event-sentences.ts";
import type { Disclosure } from "../platform/operation.ts";
import { isNotFolded, type PageMoment, type PageMoments } from "../projector/moment-of-console-page.ts";
import { renderPage } from "./document.tsx";
import { hrefAt } from "./hrefs.ts";
import { notReadyPage } from "./pages/error-page.tsx";
import type {
  ConsolePage,
  ConsoleSettings,
  Live,
  Made,
  OtherPage,
  PageReader,
  StateName,
  View,
  Visit,
} from "./page-context.ts";

export interface ConsoleSources {
  readonly moments: PageMoments;
  readonly live: Live;
  readonly settings: ConsoleSettings;
}

/** A page as HTML. */
export interface PageText {
  /**
   * Outcome of rendering a page. `missing`: the page says that the log does not know the requested name; `not_ready`:
   * it says that the requested moment is still being read; `no_moment`: it shows the present, and why.
   */
  readonly outcome: "shown" | "missing" | "not_ready" | "no_moment";
  readonly text: string;
  readonly disclosed?: Disclosure | undefined;
}

/** A page, or the address of the page to redirect to. */
export type RenderedPage = PageText | ({ readonly outcome: "elsewhere" } & OtherPage);

export type Console = ReturnType<typeof createConsole>;

export function createConsole({ moments, live, settings }: ConsoleSources) {
  const renderNow = async (page: ConsolePage, visit: Visit): Promise<RenderedPage | undefined> => {
    const moment = await moments.now();
    return rendered(await page.render({ ...visit, ...moment, reader: toReader(moment, settings), live, settings }));
  };

  /** Renders a page as of an earlier moment. Such a page has no actions. */
  const renderPast = async (page: ConsolePage, visit: Visit, asOf: string): Promise<RenderedPage | undefined> => {
    const { parameters, query } = visit;
    const found = await moments.at(asOf, (moment) =>
      typeof page.reads === "function" ? page.reads({ ...moment, parameters, query }) : page.reads,
    );
    if (found.outcome === "not_ready") return notReady(query);
    if (found.outcome === "no_moment") {
      const now = await renderNow(page, { ...visit, notice: { text: toCapital(found.why), isFault: true } });
      return now !== undefined && "text" in now ? { ...now, outcome: "no_moment" } : now;
    }
    const { moment } = found;
    const reader = toReader(moment, settings);
    const view: View<StateName> = { ...visit, ...moment, reader, live: undefined, settings, formToken: undefined };
    let made: Made;
    try {
      made = await page.render(view);
    } catch (fault) {
      if (isNotFolded(fault)) return notReady(query);
      throw fault;
    }
    return rendered(
      made !== undefined && "location" in made ? { ...made, location: hrefAt(made.location, asOf) } : made,
    );
  };

  return {
    findMeant: (text: string, language: string) => moments.findMeant(text, language),
    /**
     * Renders a page, as of the moment in its query's `as_of` if there is one. Undefined if there is nothing at the
     * address.
     */
    async render(page: ConsolePage, visit: Visit): Promise<RenderedPage | undefined> {
      const asOf = visit.query.get("as_of") ?? "";
      return asOf === "" ? renderNow(page, visit) : renderPast(page, visit, asOf);
    },
  };
}

const FIGURE_EVENTS_MAX = 2_000;

function toReader({ reader }: PageMoment, settings: ConsoleSettings): PageReader {
  const { configured, tokens } = settings;
  return { ...reader, config: { outreach: settings }, configured, tokens, eventsMax: FIGURE_EVENTS_MAX };
}

function notReady(query: URLSearchParams): RenderedPage {
  return { outcome: "not_ready", text: renderPage(notReadyPage(query)) };
}

function rendered(made: Made): RenderedPage | undefined {
  if (made === undefined) return undefined;
  if ("location" in made) return { outcome: "elsewhere", ...made };
  const { page, disclosed, isMissing = false } = "page" in made ? made : { page: made };
  return { outcome: isMissing ? "missing" : "shown", text: renderPage(page), disclosed };
}

/** The parts of the stylesheet in the order of their rules, of which later ones override earlier ones. */
const STYLES = [
  new URL("./styles/base.css", import.meta.url),
  new URL("./styles/frame.css", import.meta.url),
  new URL("./styles/popovers.css", import.meta.url),
  new URL("./styles/surfaces.css", import.meta.url),
  new URL("./styles/controls.css", import.meta.url),
  new URL("./styles/dialogs.css", import.meta.url),
  new URL("./styles/search.css", import.meta.url),
  new URL("./styles/lists.css", import.meta.url),
  new URL("./styles/event-panel.css", import.meta.url),
  new URL("./styles/runs.css", import.meta.url),
  new URL("./styles/charts.css", import.meta.url),
  new URL("./styles/tables.css", import.meta.url),
  new URL("./styles/import.css", import.meta.url),
  new URL("./styles/attention-and-deliveries.css", import.meta.url),
  new URL("./styles/phone.css", import.meta.url),
];

/**
 * The parts of the script, each before the parts that import it. They are joined to one module, which takes one
 * request.
 */
const SCRIPTS = [
  new URL("./script/refresh-in-place.js", import.meta.url),
  new URL("./script/disable-empty-bulk-actions.js", import.meta.url),
  new URL("./script/choose-chart-bar.js", import.meta.url),
  new URL("./script/event-panel.js", import.meta.url),
  new URL("./script/live.js", import.meta.url),
  new URL("./script/filters.js", import.meta.url),
  new URL("./script/import.js", import.meta.url),
  new URL("./script/count-campaign-audience.js", import.meta.url),
  new URL("./script/dialogs.js", import.meta.url),
  new URL("./script/moment-slider.js", import.meta.url),
  new URL("./script/search-suggestions.js", import.meta.url),
  new URL("./script/keyboard-shortcuts.js", import.meta.url),
];

/** Matches the words that make a part a module: imports of other parts, and `export`. */
const MODULE_WORDS = /^import .* from "\.\/(?!idiomorph).*";\n|^export (?=\w)/gm;

/** The files that pages load. Pages load nothing from elsewhere. */
export const ASSETS = {
  "/console.css": readAsset("text/css", ...STYLES),
  "/console.js": readAsset("text/javascript", ...SCRIPTS),
  "/idiomorph.js": readAsset("text/javascript", new URL(import.meta.resolve("idiomorph/dist/idiomorph.esm.js"))),
};

/** Reads a file that pages load, from its parts. `type` is the media type of its text, which is UTF-8. */
function readAsset(type: string, ...parts: readonly URL[]) {
  return {
    type,
    body: parts
      .map((part) => readFileSync(part, "utf8"))
      .join("\n")
      .replaceAll(MODULE_WORDS, ""),
  };
}
