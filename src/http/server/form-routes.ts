import { Type } from "@sinclair/typebox";
import { status, type AnyElysia } from "elysia";
import type { Console } from "../../console/render-console.ts";
import type { ConsolePage, Notice } from "../../console/page-context.ts";
import type { Clock } from "../../platform/clock-ids-and-timers.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { createEncryptedCookie, type CookieSite, type EncryptedCookie } from "../access/encrypted-cookie.ts";
import type { Sessions } from "../access/session.ts";
import { html, redirect, toValue, whole, type HttpResponse } from "./http-response.ts";
import { formBody, type RequestBody, type Fields, type SentForm } from "./body.ts";
import { declare, textReply, type Form, type Declaration, type RequestContext } from "./endpoint.ts";
import { readLanguage } from "./accept-language.ts";
import { toProblem, problems } from "./problem.ts";

/** Cookie with the notice that a form leaves for the next page, which shows and removes it. */
export type Notices = EncryptedCookie<Notice>;

/** Maximum length of a notice with its warnings, in characters. */
const WITH_WARNINGS_MAX = 900;

/**
 * Maximum length of a notice, in characters. Browsers drop a cookie of more than 4,096 bytes, and one character may
 * take three bytes before encryption and base64.
 */
const CHARACTERS_MAX = 600;

const COOKIE = {
  name: "reachlog_notice",
  keyName: "console-notice",
  // The notice lasts long enough for a slow redirect. Later it would appear on a page that has nothing to do with the
  // form.
  lifetimeSeconds: 60,
};

function shorten(notice: Notice): Notice {
  const { text: whole, warnings = [] } = notice;
  const text = whole.slice(0, CHARACTERS_MAX);
  const share = Math.floor((WITH_WARNINGS_MAX - text.length) / warnings.length);
  return { ...notice, text, ...(warnings.length > 0 && { warnings: warnings.map((one) => one.slice(0, share)) }) };
}

export function createNotices(masterKey: Uint8Array, site: CookieSite, clock: Clock): Notices {
  const cookie = createEncryptedCookie<Notice>(COOKIE, masterKey, site, clock);
  return { ...cookie, give: (notice) => cookie.give(shorten(notice)) };
}

export interface FormContext {
  readonly sessions: Sessions;
  readonly notices: Notices;
  readonly console: Console;
}

/**
 * Schema of a path of this service, to return to after a form. A path that a browser would take for another host's
 * address does not match.
 */
const BACK = { maxLength: 2_000, pattern: String.raw`^/(?![/\\])[\x21-\x7e]*$` };

export const backField = Type.String({ ...BACK, description: "The page to return to.", examples: ["/people"] });

/**
 * Returns the address of the requested page, to which a form returns. Unknown members of its query are left out,
 * because a person may have pasted a token there. Undefined if no form may return to the page.
 */
export function toBack({ request, endpoint }: RequestContext): string | undefined {
  const { pathname, searchParams } = new URL(request.url);
  const known = [...searchParams].filter(([name]) => Object.hasOwn(endpoint.query ?? {}, name));
  const back = known.length === 0 ? pathname : `${pathname}?${new URLSearchParams(known)}`;
  return isBack(back) ? back : undefined;
}

/** True if a browser may be sent to this path after a form or an authorization. */
export function isBack(path: string): boolean {
  return path.length <= BACK.maxLength && new RegExp(BACK.pattern).test(path);
}

export const commonFields = Type.Object({
  form_token: Type.String({ maxLength: 100, description: "Proves that the form comes from one of our pages (CSRF)." }),
  back: backField,
});

const fieldsBody = formBody(Type.Intersect([commonFields, Type.Record(Type.String(), Type.String())]));

/** Handler of an API endpoint, with the type by which the console's forms call it. */
type Handler = (context: Readonly<Record<string, unknown>>) => unknown;

/**
 * Registers the console's forms that the routes declare, each with its route's handler, but under its own path. If an
 * API path took forms too, a form sent there without a session would get 401 instead of 415.
 */
export function addForms(app: AnyElysia, context: FormContext): void {
  // The loop itself adds routes to this list. They are forms, and declare no forms themselves, so the loop ends.
  for (const route of app.routes) {
    const { form = [] } = route.hooks.detail as Declaration;
    for (const one of [form].flat()) addForm(app, context, one, route);
  }
}

function addForm(
  app: AnyElysia,
  context: FormContext,
  form: Form,
  { handler, hooks }: AnyElysia["routes"][number],
): void {
  const operate = handler as Handler;
  const wanted: RequestBody<unknown> = hooks.body;
  const answerForm = async ({ body, call }: { readonly body: unknown; readonly call: RequestContext }) =>
    whole(await send(body, call));
  app.post(form.path, answerForm as never, {
    parse: "none",
    body: form.upload ?? fieldsBody,
    response: repliesTo(form),
    detail: formOperation(form, hooks.detail as Declaration),
  });

  async function send(body: unknown, call: RequestContext): Promise<HttpResponse> {
    const { fields: all, file } =
      form.upload === undefined ? { fields: body as SentForm["fields"] } : (body as SentForm);
    const { form_token: given, back: path, ...fields } = all;
    checkFormToken(context.sessions, call.request, given);
    const goBack = (notice: Notice): HttpResponse =>
      redirect(303, path, { "set-cookie": context.notices.give(notice) });
    try {
      const context = {
        body: wanted.fit(form.body?.(fields, file) ?? leaveOutEmpty(fields)),
        call,
        request: call.request,
        status,
      };
      const value = toValue(await operate(context)) as never;
      if ("notice" in form) {
        const said = form.notice(value, fields);
        return goBack(typeof said === "string" ? { text: said, isFault: false } : said);
      }
      if ("location" in form) return redirect(303, form.location(value));
      // This response shows the result, because the result is stored nowhere for a later request.
      return html(200, await render(await form.page(value, fields, file), call));
    } catch (fault) {
      const notice = faultNotice(fault);
      if (!("page" in form) || form.refused === undefined) return goBack(notice);
      const { status: refusal = 422, headers } = toProblem(fault) ?? {};
      // If the log is unreachable, the page cannot be rendered. The browser then returns to the former page with a
      // notice.
      const shown = await render(form.refused(notice, fields), call).catch(() => undefined);
      return shown === undefined ? goBack(notice) : html(refusal, shown, { ...headers });
    }
  }

  async function render(page: ConsolePage, { request }: RequestContext): Promise<string> {
    const formToken = context.sessions.formToken(request);
    const language = readLanguage(request);
    const caller = context.sessions.tokenOf(request);
    const visit = {
      parameters: {},
      query: new URLSearchParams(),
      language,
      caller,
      formToken,
      notice: undefined,
      isAnswer: true,
    };
    const shown = await context.console.render(page, visit);
    if (shown === undefined || !("text" in shown)) throw problems.notFound();
    return shown.text;
  }
}

/** Returns the form's fields that are not empty. */
export function leaveOutEmpty(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
}

/**
 * Returns the fields of a form for an erasure, in which the operator must type the recipient's name. Throws the problem
 * 400 if the typed name differs; the browser checks it too.
 */
export function readConfirmed({ name, confirm, ...fields }: Fields): Fields {
  if (name === undefined || confirm?.trim() !== name) {
    throw problems.malformed(`Nothing was erased: type ${name ?? "the recipient's name"} to confirm.`);
  }
  return leaveOutEmpty(fields);
}

/**
 * Collects the answers in a form with a choice for each row: `row-43=arrived` adds 43 to the list `arrived`. Rows
 * without an answer are left out.
 */
export function readAnswers(fields: Fields): object {
  const rows = Object.entries(fields).filter(([name]) => name.startsWith("row-"));
  const answers = Object.groupBy(rows, ([, answer]) => answer);
  const others = Object.entries(leaveOutEmpty(fields)).filter(([name]) => !name.startsWith("row-"));
  const lists = Object.entries(answers).map(([answer, own = []]) => [answer, own.map(([name]) => name.slice(4))]);
  return Object.fromEntries([...others, ...lists]) as object;
}

/**
 * Reads the form of a campaign. The lists have one entry on each line, and an emptied topic or gap between messages
 * removes that setting. Browsers send each line break of a text as CR LF, which becomes LF again.
 */
export function readCampaignFields(fields: Fields): object {
  const toNumber = (digits: string) => (/^\d+$/.test(digits) ? Number(digits) : digits);
  const toLines = (entries: string) => entries.split(/\r?\n/).filter((line) => line.trim() !== "");
  const isSet = () => true;
  const more = { all: isSet, replied: isSet, failed: isSet, text: (typed: string) => typed.replaceAll("\r\n", "\n") };
  const read = { fields: toLines, timezones: toLines, days: toNumber, gap_days: toNumber, ...more };
  const removed = { ...(fields["topic"] === "" && { topic: "" }), ...(fields["gap_days"] === "" && { gap_days: 0 }) };
  const given = Object.entries(leaveOutEmpty(fields)).map(([name, value]) => {
    return [name, Object.hasOwn(read, name) ? read[name as keyof typeof read](value) : value];
  });
  // A list field of the campaign's form that has only blank lines sets no condition on the recipients, so the field is
  // left out.
  const kept = given.filter(([, value]) => !Array.isArray(value) || value.length > 0);
  return { ...Object.fromEntries(kept), ...removed };
}

function formOperation(form: Form, { id, summary, scope, isSlow, personalRead }: Declaration) {
  return declare(form.id ?? `${id}ByForm`, "console", scope === undefined ? "form" : ["form", scope], {
    apiOperationId: id,
    summary: `${summary} Console form.`,
    description:
      form.description ?? "Does the same as the API's operation, and redirects back to the page with a notice.",
    problems: ["unauthorized", "foreignSite"],
    // Only a form that answers with a page shows personal data. A form that answers with a notice shows none that the
    // form did not contain already.
    ...omitUndefined({ isSlow, personalRead: "page" in form ? personalRead : undefined }),
  });
}

function repliesTo(form: Form) {
  const back = { 303: textReply("Back to the page.", { headers: ["location", "set-cookie"] }) };
  if (!("page" in form)) return back;
  const shown = { 200: textReply(form.pageDescription ?? "The result.", { mediaType: "text/html" }) };
  if (form.refused === undefined) return { ...shown, ...back };
  return { ...shown, 422: textReply("The form again, with what is wrong.", { mediaType: "text/html" }) };
}

/** Throws 403 if the form's CSRF token is not one that this browser's session was given. */
export function checkFormToken(sessions: Sessions, request: Request, given: string): void {
  if (!sessions.isFormToken(request, given)) throw problems.foreignSite();
}

/** Converts a refusal to a notice with a next step. Throws any other fault again. */
function faultNotice(fault: unknown): Notice {
  const problem = toProblem(fault);
  if (problem === undefined) throw fault;
  const { words = problem.message, nextStep } = problem.people;
  return { text: words, isFault: true, ...(nextStep === undefined ? {} : { nextStep }) };
}
