import { auditPage, eventPage } from "../../console/audit.tsx";
import { ASSETS, type Console, type Rendered } from "../../console/console.ts";
import { deliveriesPage } from "../../console/deliveries.tsx";
import { renderPage } from "../../console/document.tsx";
import { findPage } from "../../console/find.tsx";
import { linkPage, linksPage } from "../../console/links.tsx";
import { overviewPage } from "../../console/overview.tsx";
import { peoplePage } from "../../console/people.tsx";
import { personPage } from "../../console/person.tsx";
import { runPage } from "../../console/run.tsx";
import { setupPage } from "../../console/setup.tsx";
import { signInPage } from "../../console/sign-in.tsx";
import { variantsPage } from "../../console/variants.tsx";
import type { Page } from "../../console/view.ts";
import { FILTER_WORDS } from "../../history/log-filter.ts";
import { html, type Answer } from "../server/answer.ts";
import type { Operation } from "../server/endpoint.ts";
import { problems } from "../server/problem.ts";
import type { Notices } from "./console-form.ts";
import type { Sessions } from "../access/session.ts";

export interface ConsoleDeps {
  readonly console: Console;
  readonly sessions: Sessions;
  readonly notices: Notices;
}

const AS_OF =
  "The moment that the page is of: a position, a day or a time in ISO 8601, as `--as-of` of the commands takes it; absent: now.";

const STATUS = { shown: 200, missing: 404, no_moment: 400, not_ready: 503 } as const satisfies Record<
  Rendered["outcome"],
  number
>;

/** Programs obey the first, browsers the second. */
const SOON = { "retry-after": "2", refresh: "2" };

const HEADERS: Readonly<Record<Rendered["outcome"], Record<string, string>>> = {
  shown: {},
  missing: {},
  no_moment: {},
  not_ready: SOON,
};

interface PageOptions {
  readonly id: string;
  readonly summary: string;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly page: Page;
}

/** A page of the console; whoever is not signed in is asked for a token in its place. */
function show({ id, summary, parameters, query, page }: PageOptions): Operation<ConsoleDeps> {
  return {
    id,
    tag: "console",
    summary,
    description: "A page of the operator's console, which wants a token as soon as one is configured.",
    ...(parameters === undefined ? {} : { parameters }),
    query: { ...query, as_of: AS_OF },
    answers: {
      200: { says: "The page.", mediaType: "text/html" },
      400: { says: "The page as of now, which says why there is no such moment.", mediaType: "text/html" },
      401: { says: "The page that asks for a token.", mediaType: "text/html" },
      503: { says: "The log is being read up to that moment.", mediaType: "text/html", headers: ["retry-after"] },
    },
    problems: parameters === undefined && query === undefined ? [] : ["notFound"],
    async handle({ console, sessions, notices }, { request, parameters: sent }) {
      if (!sessions.admits(request)) return html(401, renderPage(signInPage(false)));
      const { searchParams: asked } = new URL(request.url);
      const notice = notices.read(request);
      const visit = { parameters: sent, query: asked, formToken: sessions.formToken(request), notice };
      const rendered = await console.render(page, visit);
      if (rendered === undefined) throw problems.notFound();
      const headers = notice === undefined ? {} : { "set-cookie": notices.cleared };
      return html(STATUS[rendered.outcome], rendered.text, { ...headers, ...HEADERS[rendered.outcome] });
    },
  };
}

const SKIP = "How many entries come before those shown.";

export const showOverview = show({
  id: "getConsole",
  summary: "The run, the quota, the channels, and what happened last.",
  page: overviewPage,
});

export const showRun = show({
  id: "getConsoleRun",
  summary: "One run, from its start on.",
  parameters: { run_id: "Its id." },
  query: { from: "Only events from this position on." },
  page: runPage,
});

export const showPeople = show({
  id: "getConsolePeople",
  summary: "Everybody known, and how far we got with them.",
  query: {
    search: "Part of a handle or name, or an id.",
    status: "How far we got with them.",
    basis: "The ground for writing to them.",
    skipped: "Why a run passed over them.",
    variant: "Of the newest message to them.",
    source: "Where they are from.",
    after: "The people behind this one, as the page before leads there.",
  },
  page: peoplePage,
});

export const showPerson = show({
  id: "getConsolePerson",
  summary: "One person, and all that the log says of them.",
  parameters: { id: "Their id, or their handle behind an @." },
  query: { before: "Only events before this position." },
  page: personPage,
});

export const showLinks = show({
  id: "getConsoleLinks",
  summary: "Every link that was clicked.",
  query: { skip: SKIP },
  page: linksPage,
});

export const showLink = show({
  id: "getConsoleLink",
  summary: "One link, and who clicked it.",
  parameters: { domain: "Its domain.", short_code: "Its short code." },
  page: linkPage,
});

export const showDeliveries = show({
  id: "getConsoleDeliveries",
  summary: "How far each channel is, and what did not get through.",
  query: {
    channel: "Only this channel.",
    letters_after: "The dead letter, as position and source, behind which the list begins.",
    in_doubt_after: "The dispatch in doubt, as position and source, behind which the list begins.",
  },
  page: deliveriesPage,
});

export const showVariants = show({
  id: "getConsoleVariants",
  summary: "What came of each variant of each message.",
  page: variantsPage,
});

export const showAudit = show({
  id: "getConsoleAudit",
  summary: "The log, newest event first.",
  query: { ...FILTER_WORDS, before: "Only events before this position: where the page before ended." },
  page: auditPage,
});

export const showFound = show({
  id: "getConsoleFind",
  summary: "The pages of what is called so.",
  query: { q: "A person, a link, a run or an event: by handle, address, id or position." },
  page: findPage,
});

export const showSetup = show({
  id: "getConsoleSetup",
  summary: "What is set up, and what is left to do.",
  page: setupPage,
});

export const showEvent = show({
  id: "getConsoleEvent",
  summary: "One event, with all that the log holds of it.",
  parameters: { position: "Where it is in the log." },
  page: eventPage,
});

/** A few tens of kilobytes from this machine: too little for files of two releases to meet in a browser. */
const UNCACHED = { "cache-control": "no-store" } as const;

/** What the pages load. It says nothing of what is in the log. */
function asset(path: keyof typeof ASSETS, id: string, summary: string): Operation<unknown> {
  const { type, body } = ASSETS[path];
  const answer: Answer = { status: 200, headers: { "content-type": `${type}; charset=utf-8`, ...UNCACHED }, body };
  return {
    id,
    tag: "console",
    summary,
    description: "Part of the console's pages.",
    answers: { 200: { says: "The file.", mediaType: type } },
    problems: [],
    handle: () => answer,
  };
}

export const stylesheet = asset("/console.css", "getConsoleStylesheet", "The console's stylesheet.");
export const script = asset("/console.js", "getConsoleScript", "What keeps the console's pages up to date.");
export const idiomorph = asset("/idiomorph.js", "getConsoleMorphing", "By which a page changes in place.");
