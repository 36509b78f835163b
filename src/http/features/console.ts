import { Type } from "@sinclair/typebox";
import { activityPage } from "../../console/pages/activity.tsx";
import { campaignPage, campaignsPage } from "../../console/pages/campaign-list-and-page.tsx";
import { eventPage } from "../../console/pages/event.tsx";
import { ASSETS, type PageText } from "../../console/render-console.ts";
import { decideLettersPage, deliveriesPage } from "../../console/pages/deliveries.tsx";
import { renderPage } from "../../console/document.tsx";
import { dryRunPage } from "../../console/pages/dry-run.tsx";
import { findPage } from "../../console/pages/find.tsx";
import { importPage } from "../../console/pages/import.tsx";
import { linkPage, linksPage } from "../../console/pages/link-list-and-page.tsx";
import { attentionPage, overviewPage } from "../../console/pages/overview-and-attention.tsx";
import { peoplePage } from "../../console/pages/people.tsx";
import { recipientPage } from "../../console/pages/recipient.tsx";
import { resultsPage } from "../../console/pages/results.tsx";
import { runPage, runsPage } from "../../console/pages/run-list-and-page.tsx";
import { setupPage } from "../../console/pages/setup.tsx";
import { signInPage } from "../../console/pages/sign-in.tsx";
import { whatIfPage } from "../../console/pages/what-if.tsx";
import type { ConsolePage } from "../../console/page-context.ts";
import { FILTER_SENTENCES } from "../../delivery/dead-letter-filter.ts";
import { isLoopback, parseHttpUrl } from "../../config/check-urls-and-plain-http.ts";
import { FILTER_WORDS } from "../../history/log-filter.ts";
import { discloseRecipient } from "../../privacy/record-personal-data-read.ts";
import { feature, type HttpContext } from "../http-context.ts";
import { html, redirect, whole } from "../server/http-response.ts";
import { formBody } from "../server/body.ts";
import { compressed, createCompressed } from "../server/compress.ts";
import {
  route,
  textReply,
  type Declaration,
  type PathAndQuery,
  type Reply,
  type RequestContext,
} from "../server/endpoint.ts";
import { backField, checkFormToken, commonFields, toBack } from "../server/form-routes.ts";
import { readLanguage } from "../server/accept-language.ts";
import { problems } from "../server/problem.ts";
import { closed, closedObject } from "../../platform/common-schemas.ts";

const AS_OF =
  "The page's moment: a position, a day or a time in ISO 8601, as for `--as-of` on the command line; or as people write it, such as `yesterday`, `9:41` or `run 35`. Default: now.";

const STATUS = { shown: 200, missing: 404, no_moment: 400, not_ready: 503 } as const satisfies Record<
  PageText["outcome"],
  number
>;

/** Headers of a page that is not ready: reload in two seconds. Programs obey the first header, browsers the second. */
const SOON = { "retry-after": "2", refresh: "2" };

const NO_STORE = { "cache-control": "no-store" };

const RANGE =
  "Of the charts: `24h`, `7d`, `30d` or `90d`. Default: the newest hours or days, from the first with data.";

/** Query parameters for the first and the last day of the charts; these take precedence over `range`. */
const OWN_RANGE = {
  from: "The charts' first day.",
  to: "The charts' last day; of many days the newest are shown.",
};

const LIMIT = "A limit of the run to confirm.";
const RUN_LIMITS = { limit: LIMIT, campaign: LIMIT, variant: LIMIT, basis: LIMIT, source: LIMIT };

/** Query parameters of a list that can be sorted by its columns. */
const SORTED = {
  sort: "The column to sort by, as the column's head links to it.",
  order: "`ascending` (default) or `descending`.",
  after: "List the rows after the one with this key; the previous page links there.",
  value: "That row's value in the sorted column.",
};

/** Query parameters of the page People, which lists contacts. */
const PEOPLE = {
  search: "Part of a handle or name, or an id.",
  status: "Their status.",
  basis: "Their consent.",
  skipped: "Why a run skipped them.",
  variant: "The variant of the newest message to them.",
  source: "The source they come from.",
  ...SORTED,
};

/** Query parameters of the search. */
const FIND = {
  q: "A person, a link, a run, a template or an event: by a part of the name, or by id, number or position. A handle may stand in a question.",
  suggest: "Present: lists the first results, also if only one page fits.",
};

export function consoleEndpoints(context: HttpContext) {
  const page = (made: ConsolePage, personalRead: PersonalData, id: string, summary: string, described?: Described) =>
    [show(context, made), viewed(personalRead, id, summary, described)] as const;
  return feature("console", "")
    .get(
      "/",
      ...page(overviewPage, "overview", "getConsole", "The run, the quota, the channels and the newest events.", {
        query: { range: RANGE, ...OWN_RANGE, ...RUN_LIMITS },
      }),
    )
    .get(
      "/runs",
      ...page(runsPage, false, "getConsoleRuns", "All runs and dry runs, with how each ended.", { query: SORTED }),
    )
    .get(
      "/runs/dry/:run_id",
      ...page(dryRunPage, "preview", "getConsoleDryRun", "One dry run: who would get a message, and who would not.", {
        parameters: { run_id: "The dry run's id." },
        query: { from: "Only recipients from this position on.", ...RUN_LIMITS },
      }),
    )
    .get(
      "/runs/:run_id",
      ...page(runPage, "run", "getConsoleRun", "One run and its events.", {
        parameters: { run_id: "The run's id." },
        query: {
          outcome: "Only recipients with this outcome: `sent`, `skipped`, `failed` or `in_doubt`.",
          from: "Only recipients from this position on.",
        },
      }),
    )
    .get(
      "/campaigns",
      ...page(campaignsPage, false, "getConsoleCampaigns", "All campaigns, and the form of a new one."),
    )
    .get(
      "/campaigns/:name",
      ...page(campaignPage, "results", "getConsoleCampaign", "One campaign: its audience, runs and results.", {
        parameters: { name: "Its name." },
      }),
    )
    .get(
      "/people",
      ...page(peoplePage, "recipients", "getConsolePeople", "All known recipients, with their status.", {
        query: PEOPLE,
      }),
    )
    .get(
      "/people/import",
      ...page(importPage(), false, "getConsoleImport", "A form that previews and imports a file of recipients."),
    )
    .get(
      "/people/:id",
      ...page(recipientPage, "recipient", "getConsoleRecipient", "One recipient, and all events about them.", {
        parameters: { id: "Their id, or their handle with an @." },
        query: { before: "Only events before this position." },
      }),
    )
    .get(
      "/links",
      ...page(linksPage, false, "getConsoleLinks", "All links with clicks.", {
        query: { range: RANGE, ...OWN_RANGE, ...SORTED },
      }),
    )
    .get(
      "/links/:domain/:short_code",
      ...page(linkPage, "link", "getConsoleLink", "One link and its clicks.", {
        parameters: { domain: "Its domain.", short_code: "Its short code." },
      }),
    )
    .get(
      "/deliveries",
      ...page(
        deliveriesPage,
        "deliveries",
        "getConsoleDeliveries",
        "The state of each channel, its dead letters and its dispatches in doubt.",
        {
          query: {
            ...FILTER_SENTENCES,
            letters_after: "List dead letters after this one: position and source.",
            in_doubt_after: "List dispatches in doubt after this one: position and source.",
          },
        },
      ),
    )
    .get(
      "/deliveries/decide",
      ...page(
        decideLettersPage,
        false,
        "getConsoleDeliveriesDecision",
        "Asks once before dead letters are retried or discarded, and names their number.",
        {
          query: {
            act: "`retry` (default) or `discard`.",
            channel: FILTER_SENTENCES.channel,
            error: FILTER_SENTENCES.error,
            all: "`true`: all that match.",
            source: "The position of a chosen event; may be given several times.",
          },
          elsewhere: "Page Deliveries with a notice, if nothing is chosen.",
        },
      ),
    )
    .get(
      "/attention",
      ...page(attentionPage, "overview", "getConsoleAttention", "What waits for an operator, and what to do about it."),
    )
    .get(
      "/results",
      ...page(resultsPage, "results", "getConsoleResults", "Outcomes of messages, and the clicks on their links.", {
        query: { by: "What to group by.", from: "The first UTC day.", to: "The last UTC day." },
      }),
    )
    .get(
      "/what-if",
      ...page(whatIfPage, false, "getConsoleWhatIf", "A form that asks what other rules would have done."),
    )
    .get(
      "/activity",
      ...page(activityPage, "log", "getConsoleActivity", "What happened, newest event first.", {
        query: {
          ...FILTER_WORDS,
          show: "What is shown where no type is named: `news`, `everything`, `messages`, `clicks`, `deliveries` or `problems`.",
          not: "No events of this type; may be given several times.",
          before: "Only events before this position, where the previous page ended.",
        },
      }),
    )
    .get(
      "/find",
      ...page(findPage, "search", "getConsoleFind", "Finds pages by name.", {
        query: FIND,
        elsewhere: "The only page that fits.",
      }),
    )
    .get(
      "/activity/:position",
      ...page(eventPage, "event", "getConsoleEvent", "One event, with all of its data.", {
        parameters: { position: "Its position in the log." },
        query: { projection: "Show what the event changed in its state. Default: the first one that it changed." },
      }),
    )
    .get("/setup", ...page(setupPage, false, "getConsoleSetup", "What is configured, and what is missing."))
    .get(...file("/console.css", "getConsoleStylesheet", "The console's stylesheet."))
    .get(...file("/console.js", "getConsoleScript", "The script that keeps the console's pages up to date."))
    .get(...file("/idiomorph.js", "getConsoleMorphing", "The library that updates a page in place."));
}

export function sessionEndpoints({ sessions, failureLimit, config }: HttpContext) {
  return feature("signing-in", "/session")
    .post(
      "",
      async ({ body: { token, back }, call }) => {
        const { publicUrl } = config.http;
        const again = (failure: "no token" | "plain http") =>
          whole(html(401, renderPage(signInPage({ back, failure, publicUrl }))));
        const cookie = sessions.signIn(token);
        if (cookie !== undefined) {
          if (dropsSecureCookie(call.request, publicUrl)) return again("plain http");
          return whole(redirect(303, back ?? "/", { "set-cookie": cookie }));
        }
        const wait = await failureLimit.fail(call.readAddress());
        if (wait !== undefined) throw problems.tooMany(wait);
        return again("no token");
      },
      route("signIn", "console", "open", {
        body: formBody(
          closedObject({
            token: Type.String({ maxLength: 1024, examples: ["not-a-token"] }),
            back: Type.Optional(backField),
          }),
        ),
        response: {
          303: textReply("Signed in.", { headers: ["location", "set-cookie"] }),
          401: textReply("The sign-in page again.", { mediaType: "text/html" }),
        },
        summary: "Signs a browser in to the console.",
        description:
          "Takes a token with the scope `read` from the console's form, stores a session in a cookie, and redirects to the requested page.",
        problems: ["missingScope"],
      }),
    )
    .post(
      "/end",
      async ({ body, call }) => {
        checkFormToken(sessions, call.request, body.form_token);
        return whole(redirect(303, "/", { "set-cookie": await sessions.signOut(call.request) }));
      },
      route("signOut", "console", "form", {
        body: formBody(Type.Pick(commonFields, ["form_token"], closed)),
        response: { 303: textReply("Signed out.", { headers: ["location", "set-cookie"] }) },
        summary: "Signs a browser out of the console.",
        description: "Ends the session on all instances, also for copies of its cookie. The console's form posts it.",
        problems: ["unauthorized", "foreignSite"],
      }),
    );
}

/**
 * True for a browser on plain http although the service's cookies are Secure. It would drop the session, and the form
 * to sign in would return without a reason. Browsers on this machine keep such a cookie.
 */
function dropsSecureCookie({ headers }: Request, publicUrl: string): boolean {
  const origin = parseHttpUrl(headers.get("origin") ?? "");
  return publicUrl.startsWith("https:") && origin?.protocol === "http:" && !isLoopback(origin.hostname);
}

/** Creates the handler of a console page, which serves it, or the sign-in page to a browser that is not signed in. */
function show({ console, sessions, notices, visits, projector, config }: HttpContext, page: ConsolePage) {
  return async ({ call, params = {} }: { readonly call: RequestContext; readonly params?: Record<string, string> }) => {
    const { request } = call;
    if (!sessions.admits(request)) {
      const { publicUrl } = config.http;
      return whole(html(401, renderPage(signInPage({ back: toBack(call), publicUrl }))));
    }
    const { searchParams: query, pathname } = new URL(request.url);
    const language = readLanguage(request);
    const asOf = query.get("as_of") ?? "";
    const meant = console.findMeant(asOf, language);
    if (meant !== asOf) {
      query.set("as_of", meant);
      if (meant === "") query.delete("as_of");
      return whole(redirect(303, query.size === 0 ? pathname : `${pathname}?${query}`, NO_STORE));
    }
    // Only a page opened in a tab shows the notice. A page that a script fetches may belong to another tab than the one
    // that the notice is for.
    const mode = request.headers.get("sec-fetch-mode") ?? "navigate";
    const notice = mode === "navigate" ? notices.read(request) : undefined;
    const { before: lastVisit, setCookie: visited } = visits(request, projector.position);
    const formToken = sessions.formToken(request);
    const caller = sessions.tokenOf(request);
    const visit = { parameters: params, query, language, formToken, notice, lastVisit, caller };
    const rendered = await console.render(page, visit);
    if (rendered === undefined) throw problems.notFound();
    if (rendered.disclosed !== undefined) {
      const { recipient, ...disclosed } = rendered.disclosed;
      call.disclosed = { ...disclosed, ...discloseRecipient(recipient) };
    }
    if (rendered.outcome === "elsewhere") {
      const told = rendered.notice && { "set-cookie": notices.give(rendered.notice) };
      return whole(redirect(303, rendered.location, { ...NO_STORE, ...told }));
    }
    // A response sets at most one cookie. If it deletes the cookie of a notice that this page shows, the cookie that
    // records the browser's visit is set by the next page.
    const headers = {
      "set-cookie": notice === undefined ? visited : notices.cleared,
      ...(rendered.outcome === "not_ready" ? SOON : {}),
    };
    const answer = html(STATUS[rendered.outcome], rendered.text, headers);
    // A page with recipients and the reader's own text is not compressed, because its length would tell how much the
    // two have in common (BREACH).
    const isChosen = query.size > 0 || Object.keys(params).length > 0;
    return whole(isChosen ? answer : await compressed(answer, request));
  };
}

/** Responses of every console page, for the API document. The 404 is described as the problem that programs get. */
const REPLIES = {
  200: textReply("The page.", { mediaType: "text/html" }),
  400: textReply("The page as of now, with the reason why the moment is invalid.", { mediaType: "text/html" }),
  401: textReply("The sign-in page.", { mediaType: "text/html" }),
  503: textReply("The log is being read up to that moment.", { mediaType: "text/html", headers: ["retry-after"] }),
} as const;

type PersonalData = NonNullable<Declaration["personalRead"]>;

interface Described extends PathAndQuery {
  /** Sentence for the API document: to which address the page may redirect. */
  readonly elsewhere?: string;
}

function viewed(personalRead: PersonalData, id: string, summary: string, described: Described = {}) {
  const { parameters, query, elsewhere } = described;
  const moved = `${elsewhere === undefined ? "" : `${elsewhere} Or: `}The same address, with the moment in ISO 8601.`;
  return route(id, "console", ["session", "read"], {
    response: { ...REPLIES, 303: textReply(moved, { headers: ["location"] }) } as typeof REPLIES & {
      readonly 303: Reply<string>;
      readonly 404: Reply<string>;
    },
    personalRead,
    summary,
    description: "A page of the operator's console. Needs a token once one is configured.",
    ...(parameters === undefined ? {} : { parameters }),
    query: { ...query, as_of: AS_OF, confirm: "The form of the page to show alone, to confirm it." },
    problems: parameters === undefined && query === undefined ? [] : ["notFound"],
  });
}

/**
 * Creates the endpoint of a file that pages load, and that holds nothing of the log. It is never cached, so that a
 * browser never mixes the files of two releases; it has only some tens of kilobytes.
 */
function file<const Path extends keyof typeof ASSETS>(path: Path, id: string, summary: string) {
  const { type, body } = ASSETS[path];
  const headers = { "content-type": `${type}; charset=utf-8`, "cache-control": "no-store" };
  const declared = route(id, "console", "open", {
    response: { 200: textReply("The file.", { mediaType: type }) },
    summary,
    description: "Part of the console's pages.",
  });
  const answer = createCompressed({ status: 200, headers, body });
  return [path, async ({ request }: { readonly request: Request }) => whole(await answer(request)), declared] as const;
}
