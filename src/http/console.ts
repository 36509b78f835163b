import { ASSETS, type Console } from "../console/console.ts";
import { renderPage } from "../console/document.tsx";
import { signInPage } from "../console/sign-in.tsx";
import { html, type Answer } from "./answer.ts";
import type { Operation } from "./endpoint.ts";
import { problems } from "./problem.ts";
import type { Sessions } from "./session.ts";

export interface ConsoleDeps {
  readonly console: Console;
  readonly sessions: Sessions;
}

interface PageOptions {
  readonly id: string;
  readonly summary: string;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** Undefined: there is nothing at that address. */
  readonly render: (console: Console, asked: PageAsked) => string | undefined | Promise<string | undefined>;
}

interface PageAsked {
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

/** A page of the console; whoever is not signed in is asked for a token in its place. */
function page({ id, summary, parameters, query, render }: PageOptions): Operation<ConsoleDeps> {
  return {
    id,
    tag: "service",
    summary,
    description: "A page of the operator's console, which wants a token as soon as one is configured.",
    ...(parameters === undefined ? {} : { parameters }),
    ...(query === undefined ? {} : { query }),
    answers: {
      200: { says: "The page.", mediaType: "text/html" },
      401: { says: "The page that asks for a token.", mediaType: "text/html" },
    },
    problems: parameters === undefined && query === undefined ? [] : ["notFound"],
    async handle({ console, sessions }, { request, parameters: sent }) {
      if (!sessions.admits(request)) return html(401, renderPage(signInPage(false)));
      const text = await render(console, { parameters: sent, query: new URL(request.url).searchParams });
      if (text === undefined) throw problems.notFound();
      return html(200, text);
    },
  };
}

const SKIP = "How many entries come before those shown.";

export const showOverview = page({
  id: "getConsole",
  summary: "The run, the quota, the channels, and what happened last.",
  render: (console) => console.overview(),
});

export const showPeople = page({
  id: "getConsolePeople",
  summary: "Everybody known, and how far we got with them.",
  query: {
    search: "Part of a handle or name, or an id.",
    status: "How far we got with them.",
    basis: "The ground for writing to them.",
    skip: SKIP,
  },
  render: (console, { query }) => console.people(query),
});

export const showLinks = page({
  id: "getConsoleLinks",
  summary: "Every link that was clicked.",
  query: { skip: SKIP },
  render: (console, { query }) => console.links(query),
});

export const showLink = page({
  id: "getConsoleLink",
  summary: "One link, and who clicked it.",
  parameters: { domain: "Its domain.", short_code: "Its short code." },
  render: (console, { parameters: { domain, short_code } }) =>
    console.links(new URLSearchParams({ link: `${domain}/${short_code}` })),
});

export const showVariants = page({
  id: "getConsoleVariants",
  summary: "What came of each variant of each message.",
  render: (console) => console.variants(),
});

export const showAudit = page({
  id: "getConsoleAudit",
  summary: "The log, newest event first, or one event.",
  query: {
    type: "Only events of this type.",
    stream: "Only events of this stream.",
    before: "Only events before this position.",
    position: "The event at this position.",
  },
  render: (console, { query }) => console.audit(query),
});

export const showEvent = page({
  id: "getConsoleEvent",
  summary: "One event, with all that the log holds of it.",
  parameters: { position: "Where it is in the log." },
  render: (console, { parameters: { position = "" } }) => console.audit(new URLSearchParams({ position })),
});

/** A few tens of kilobytes from this machine: too little for files of two releases to meet in a browser. */
const UNCACHED = { "cache-control": "no-store" } as const;

/** What the pages load. It says nothing of what is in the log. */
function asset(path: keyof typeof ASSETS, id: string, summary: string): Operation<unknown> {
  const { type, body } = ASSETS[path];
  const answer: Answer = { status: 200, headers: { "content-type": `${type}; charset=utf-8`, ...UNCACHED }, body };
  return {
    id,
    tag: "service",
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
