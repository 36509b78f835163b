import { Type } from "@sinclair/typebox";
import { auditPage, eventPage } from "../../console/audit.tsx";
import { ASSETS, type Rendered } from "../../console/console.ts";
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
import { feature, type AppDeps } from "../deps.ts";
import { html, redirect, whole, type Answer } from "../server/answer.ts";
import { formBody } from "../server/body.ts";
import { operation, textReply, type Operation, type Reply, type RequestContext } from "../server/endpoint.ts";
import { checkFormToken, commonFields } from "../server/form.ts";
import { problems } from "../server/problem.ts";
import { closed } from "./schema.ts";

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

const SKIP = "How many entries come before those shown.";

/** A few tens of kilobytes from this machine: too little for files of two releases to meet in a browser. */
function toFile({ type, body }: { readonly type: string; readonly body: string }): Answer<200> {
  const headers = { "content-type": `${type}; charset=utf-8`, "cache-control": "no-store" };
  return { status: 200, headers, body };
}

export function consoleEndpoints(deps: AppDeps) {
  return feature("console", "")
    .get(
      "/",
      show(deps, overviewPage),
      viewed("getConsole", "The run, the quota, the channels, and what happened last."),
    )
    .get(
      "/runs/:run_id",
      show(deps, runPage),
      viewed("getConsoleRun", "One run, from its start on.", {
        parameters: { run_id: "Its id." },
        query: { from: "Only events from this position on." },
      }),
    )
    .get(
      "/people",
      show(deps, peoplePage),
      viewed("getConsolePeople", "Everybody known, and how far we got with them.", {
        query: {
          search: "Part of a handle or name, or an id.",
          status: "How far we got with them.",
          basis: "The ground for writing to them.",
          skipped: "Why a run passed over them.",
          variant: "Of the newest message to them.",
          source: "Where they are from.",
          after: "The people behind this one, as the page before leads there.",
        },
      }),
    )
    .get(
      "/people/:id",
      show(deps, personPage),
      viewed("getConsolePerson", "One person, and all that the log says of them.", {
        parameters: { id: "Their id, or their handle behind an @." },
        query: { before: "Only events before this position." },
      }),
    )
    .get(
      "/links",
      show(deps, linksPage),
      viewed("getConsoleLinks", "Every link that was clicked.", { query: { skip: SKIP } }),
    )
    .get(
      "/links/:domain/:short_code",
      show(deps, linkPage),
      viewed("getConsoleLink", "One link, and who clicked it.", {
        parameters: { domain: "Its domain.", short_code: "Its short code." },
      }),
    )
    .get(
      "/deliveries",
      show(deps, deliveriesPage),
      viewed("getConsoleDeliveries", "How far each channel is, and what did not get through.", {
        query: {
          channel: "Only this channel.",
          letters_after: "The dead letter, as position and source, behind which the list begins.",
          in_doubt_after: "The dispatch in doubt, as position and source, behind which the list begins.",
        },
      }),
    )
    .get(
      "/variants",
      show(deps, variantsPage),
      viewed("getConsoleVariants", "What came of each variant of each message."),
    )
    .get(
      "/audit",
      show(deps, auditPage),
      viewed("getConsoleAudit", "The log, newest event first.", {
        query: { ...FILTER_WORDS, before: "Only events before this position: where the page before ended." },
      }),
    )
    .get(
      "/find",
      show(deps, findPage),
      viewed("getConsoleFind", "The pages of what is called so.", {
        query: { q: "A person, a link, a run or an event: by handle, address, id or position." },
      }),
    )
    .get(
      "/audit/:position",
      show(deps, eventPage),
      viewed("getConsoleEvent", "One event, with all that the log holds of it.", {
        parameters: { position: "Where it is in the log." },
      }),
    )
    .get("/setup", show(deps, setupPage), viewed("getConsoleSetup", "What is set up, and what is left to do."))
    .get(
      "/console.css",
      () => whole(toFile(ASSETS["/console.css"])),
      loaded("/console.css", "getConsoleStylesheet", "The console's stylesheet."),
    )
    .get(
      "/console.js",
      () => whole(toFile(ASSETS["/console.js"])),
      loaded("/console.js", "getConsoleScript", "What keeps the console's pages up to date."),
    )
    .get(
      "/idiomorph.js",
      () => whole(toFile(ASSETS["/idiomorph.js"])),
      loaded("/idiomorph.js", "getConsoleMorphing", "By which a page changes in place."),
    );
}

/** Signing a browser in and out. */
export function sessionEndpoints({ sessions, failureLimit }: AppDeps) {
  return feature("signing-in", "/session")
    .post(
      "",
      async ({ body, call }) => {
        const cookie = sessions.signIn(body.token);
        if (cookie !== undefined) return whole(redirect(303, "/", { "set-cookie": cookie }));
        const wait = await failureLimit.fail(call.addressOf());
        if (wait !== undefined) throw problems.tooMany(wait);
        return whole(html(401, renderPage(signInPage(true))));
      },
      {
        body: formBody(Type.Object({ token: Type.String({ maxLength: 1024, examples: ["not-a-token"] }) }, closed)),
        response: {
          303: textReply("Signed in.", { headers: ["location", "set-cookie"] }),
          401: textReply("The page that asks for a token, again.", { mediaType: "text/html" }),
        },
        detail: operation("signIn", "console", "open", {
          summary: "Signs a browser in to the console.",
          description: "Takes a token from the console's form, and keeps it in a cookie of this browser.",
        }),
      },
    )
    .post(
      "/end",
      ({ body, call }) => {
        checkFormToken({ sessions }, call.request, body.form_token);
        return whole(redirect(303, "/", { "set-cookie": sessions.signedOut }));
      },
      {
        body: formBody(Type.Pick(commonFields, ["form_token"], closed)),
        response: { 303: textReply("Signed out.", { headers: ["location", "set-cookie"] }) },
        detail: operation("signOut", "console", "form", {
          summary: "Signs a browser out of the console.",
          description: "Takes the session's cookie from this browser, by the console's form.",
          problems: ["unauthorized", "foreignSite"],
        }),
      },
    );
}

/** A page of the console; a browser that is not signed in is asked for a token in its place. */
function show({ console, sessions, notices }: AppDeps, page: Page) {
  return async ({ call, params = {} }: { readonly call: RequestContext; readonly params?: Record<string, string> }) => {
    const { request } = call;
    if (!sessions.admits(request)) return whole(html(401, renderPage(signInPage(false))));
    const { searchParams: query } = new URL(request.url);
    const notice = notices.read(request);
    const visit = { parameters: params, query, formToken: sessions.formToken(request), notice };
    const rendered = await console.render(page, visit);
    if (rendered === undefined) throw problems.notFound();
    const headers = notice === undefined ? {} : { "set-cookie": notices.cleared };
    return whole(html(STATUS[rendered.outcome], rendered.text, { ...headers, ...HEADERS[rendered.outcome] }));
  };
}

/** Of each page. A 404 stands in the document as the problem that it is to programs. */
const REPLIES = {
  200: textReply("The page.", { mediaType: "text/html" }),
  400: textReply("The page as of now, which says why there is no such moment.", { mediaType: "text/html" }),
  401: textReply("The page that asks for a token.", { mediaType: "text/html" }),
  503: textReply("The log is being read up to that moment.", { mediaType: "text/html", headers: ["retry-after"] }),
} as const;

function viewed(id: string, summary: string, { parameters, query }: Pick<Operation, "parameters" | "query"> = {}) {
  return {
    response: REPLIES as typeof REPLIES & { readonly 404: Reply<string> },
    detail: operation(id, "console", "session", {
      summary,
      description: "A page of the operator's console, which wants a token as soon as one is configured.",
      ...(parameters === undefined ? {} : { parameters }),
      query: { ...query, as_of: AS_OF },
      problems: parameters === undefined && query === undefined ? [] : ["notFound"],
    }),
  };
}

/** What the pages load. It says nothing of what is in the log. */
function loaded(path: keyof typeof ASSETS, id: string, summary: string) {
  return {
    response: { 200: textReply("The file.", { mediaType: ASSETS[path].type }) },
    detail: operation(id, "console", "open", { summary, description: "Part of the console's pages." }),
  };
}
