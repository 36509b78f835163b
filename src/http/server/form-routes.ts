import { Type } from "@sinclair/typebox";
import { status, type AnyElysia } from "elysia";
import type { Console } from "../../console/console.ts";
import type { ConsolePage, Notice } from "../../console/page-context.ts";
import type { Clock } from "../../platform/clock.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { createEncryptedCookie, type CookieSite, type EncryptedCookie } from "../access/encrypted-cookie.ts";
import type { Sessions } from "../access/session.ts";
import { html, redirect, toValue, whole, type HttpResponse } from "./answer.ts";
import { formBody, type RequestBody, type Fields, type SentForm } from "./body.ts";
import { declare, textReply, type Form, type Declaration, type RequestContext } from "./endpoint.ts";
import { toProblem, problems } from "./problem.ts";

/** The result of a form. The browser keeps it until its reader dismisses it, or the next form replaces it. */
export type Notices = EncryptedCookie<Notice>;

/** Browsers drop a cookie of more than 4,096 bytes, and a character may take three, encrypted and in base64. */
const CHARACTERS_MAX = 600;

const COOKIE = {
  name: "reachlog_notice",
  keyName: "console-notice",
  // Long enough for a reader who was called away; useless the next day.
  lifetimeSeconds: 3_600,
};

export function createNotices(masterKey: Uint8Array, site: CookieSite, clock: Clock): Notices {
  const cookie = createEncryptedCookie<Notice>(COOKIE, masterKey, site, clock);
  return { ...cookie, give: (notice) => cookie.give({ ...notice, text: notice.text.slice(0, CHARACTERS_MAX) }) };
}

export interface FormDeps {
  readonly sessions: Sessions;
  readonly notices: Notices;
  readonly console: Console;
}

/** A path of this service. A path that a browser would take for another host's address does not match. */
const BACK = { maxLength: 2_000, pattern: String.raw`^/(?![/\\])[\x21-\x7e]*$` };

export const backField = Type.String({ ...BACK, description: "The page to return to.", examples: ["/people"] });

/**
 * Returns the page that a request asks for, with the known members of its query only: any other may be a token in the
 * wrong place. Undefined if no form may lead back to it.
 */
export function toBack({ request, endpoint }: Pick<RequestContext, "request" | "endpoint">): string | undefined {
  const { pathname, searchParams } = new URL(request.url);
  const known = [...searchParams].filter(([name]) => Object.hasOwn(endpoint.query ?? {}, name));
  const back = known.length === 0 ? pathname : `${pathname}?${new URLSearchParams(known)}`;
  return back.length <= BACK.maxLength && new RegExp(BACK.pattern).test(back) ? back : undefined;
}

export const commonFields = Type.Object({
  form_token: Type.String({ maxLength: 100, description: "Proves that the form comes from one of our pages (CSRF)." }),
  back: backField,
});

const fieldsBody = formBody(Type.Intersect([commonFields, Type.Record(Type.String(), Type.String())]));

/** A handler of the API, typed as the forms call it. */
type Handler = (context: Readonly<Record<string, unknown>>) => unknown;

/**
 * Registers the forms that the app's routes declare, each with its route's own handler. They have paths of their own: on
 * the API's path, a form's content type would turn a clear 415 into a 401.
 */
export function addForms(app: AnyElysia, deps: FormDeps): void {
  // The forms are added to these routes, but declare no forms themselves.
  for (const route of app.routes) {
    const { form = [] } = route.hooks.detail as Declaration;
    for (const one of [form].flat()) addForm(app, deps, one, route);
  }
}

function addForm(app: AnyElysia, deps: FormDeps, form: Form, { handler, hooks }: AnyElysia["routes"][number]): void {
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
    checkFormToken(deps, call.request, given);
    const goBack = (notice: Notice): HttpResponse => redirect(303, path, { "set-cookie": deps.notices.give(notice) });
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
      // Shows a result that is recorded nowhere.
      return html(200, await render(form.page(value, fields), call));
    } catch (fault) {
      const notice = faultNotice(fault);
      if (!("page" in form) || form.refused === undefined) return goBack(notice);
      const { status: refusal = 422, headers } = toProblem(fault) ?? {};
      // Without the log, the page cannot be rendered.
      const shown = await render(form.refused(notice, fields), call).catch(() => undefined);
      return shown === undefined ? goBack(notice) : html(refusal, shown, { ...headers });
    }
  }

  async function render(page: ConsolePage, { request }: RequestContext): Promise<string> {
    const formToken = deps.sessions.formToken(request);
    const visit = { parameters: {}, query: new URLSearchParams(), formToken, notice: undefined };
    const shown = await deps.console.render(page, visit);
    if (shown === undefined || !("text" in shown)) throw problems.notFound();
    return shown.text;
  }
}

/** Leaves out empty fields. */
export function leaveOutEmpty(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
}

/**
 * Returns the fields of a form that asks to type the name of what is erased, as the browser checks too. Throws the
 * problem 400 if the typed name differs.
 */
export function readConfirmed({ name, confirm, ...fields }: Fields): Fields {
  if (name === undefined || confirm?.trim() !== name) {
    throw problems.malformed(`Nothing was erased: type ${name ?? "the recipient's name"} to confirm.`);
  }
  return leaveOutEmpty(fields);
}

function formOperation(form: Form, { id, summary, scope, isSlow, personalRead }: Declaration) {
  return declare(form.id ?? `${id}ByForm`, "console", scope === undefined ? "form" : ["form", scope], {
    apiOperationId: id,
    summary: `${summary} Console form.`,
    description:
      form.description ?? "Does the same as the API's operation, and redirects back to the page with a notice.",
    problems: ["unauthorized", "foreignSite"],
    // A notice names no more than the form did.
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

/** Throws 403 for a form that is not ours, or of another session. */
export function checkFormToken({ sessions }: Pick<FormDeps, "sessions">, request: Request, given: string): void {
  if (!sessions.isFormToken(request, given)) throw problems.foreignSite();
}

/** Converts a refusal to a notice with a next step. Throws a fault of ours. */
function faultNotice(fault: unknown): Notice {
  const problem = toProblem(fault);
  if (problem === undefined) throw fault;
  const { words = problem.message, nextStep } = problem.people;
  return { text: words, isFault: true, ...(nextStep === undefined ? {} : { nextStep }) };
}
