import { timingSafeEqual } from "node:crypto";
import { Type, type Static } from "@sinclair/typebox";
import type { Console } from "../../console/console.ts";
import type { Notice, Page } from "../../console/view.ts";
import type { Clock } from "../../platform/clock.ts";
import { html, redirect, type Answer } from "../server/answer.ts";
import { formBody } from "../server/body.ts";
import { createEncryptedCookie, type EncryptedCookie } from "../access/encrypted-cookie.ts";
import { post, type PostOperation } from "../server/endpoint.ts";
import { problemOf, problems } from "../server/problem.ts";
import type { Sessions } from "../access/session.ts";

/** What became of a form, kept by the browser until the page that it leads to has shown it. */
export type Notices = EncryptedCookie<Notice>;

/** Browsers drop a cookie of more than 4,096 bytes, and a character may be three, encrypted and in base64. */
const CHARACTERS_MAX = 600;

const COOKIE = {
  name: "reachlog_notice",
  keyName: "console-notice",
  path: "/",
  lifetimeSeconds: 60,
  sameSite: "strict",
} as const;

export function createNotices(masterKey: Uint8Array, isSecure: boolean, clock: Clock): Notices {
  const cookie = createEncryptedCookie<Notice>(COOKIE, masterKey, isSecure, clock);
  return { ...cookie, give: (notice) => cookie.give({ ...notice, text: notice.text.slice(0, CHARACTERS_MAX) }) };
}

export interface FormDeps {
  readonly sessions: Sessions;
  readonly notices: Notices;
  readonly console: Console;
}

/** What a form fills in, by name. Boxes that are not ticked are absent. */
export type Fields = Readonly<Record<string, string>>;

interface Filled {
  /** Of the form; default: that of the operation, `ByForm`. */
  readonly id?: string;
  /** The body that the operation takes for these fields. */
  readonly body: (fields: Fields) => unknown;
}

/** `answer` is the body that a program would have got. */
type FormOptions = Filled &
  (
    | {
        /** What was done, in a sentence; a notice where it is not as it should be. */
        readonly says: (answer: never, fields: Fields) => string | Notice;
      }
    | {
        /** Shows what came of it in place of the page: for what is recorded nowhere. */
        readonly page: (answer: never) => Page;
      }
  );

/** Fields of every form. */
export const commonFields = Type.Object({
  form_token: Type.String({ maxLength: 100, description: "Proves that the form is of a page of ours." }),
  back: Type.String({
    maxLength: 2_000,
    pattern: String.raw`^/(?![/\\])[\x21-\x7e]*$`,
    description: "The page to lead back to.",
    examples: ["/people"],
  }),
});

/** Beside its own. */
const fieldsSchema = Type.Intersect([commonFields, Type.Record(Type.String(), Type.String())]);

type FormFields = Static<typeof fieldsSchema>;

/**
 * A form of the console: does what an operation of the API does, in the name of whoever signed in, and leads back to a page
 * that says what came of it, or shows it. So the console can do nothing that a program cannot.
 */
export function formOf<Deps, Body>(
  operation: PostOperation<Deps, Body>,
  options: FormOptions,
): PostOperation<Deps & FormDeps, FormFields> {
  const back = { 303: { says: "Back to the page.", headers: ["location", "set-cookie"] } };
  return post({
    id: options.id ?? `${operation.id}ByForm`,
    does: operation.id,
    tag: "console",
    summary: `${operation.summary} As a form of the console.`,
    description: "Does what the operation of the API does, and leads back to the page with a notice.",
    body: formBody(fieldsSchema),
    answers: "page" in options ? { 200: { says: "What came of it.", mediaType: "text/html" }, ...back } : back,
    problems: ["unauthorized", "foreignSite"],
    ...(operation.isSlow === undefined ? {} : { isSlow: operation.isSlow }),
    async handle(deps: Deps & FormDeps, asked) {
      const { form_token: given, back: path, ...fields } = asked.body;
      checkFormToken(deps, asked.request, given);
      const goBack = (notice: Notice): Answer => redirect(303, path, { "set-cookie": deps.notices.give(notice) });
      try {
        const body = operation.body.fit(options.body(fields)) as Body;
        const answer = JSON.parse((await operation.handle(deps, { ...asked, body })).body) as never;
        if ("says" in options) return goBack(noticeOf(options.says(answer, fields)));
        return await showInPlace(deps, asked.request, options.page(answer));
      } catch (fault) {
        return goBack(faultNotice(fault));
      }
    },
  });
}

/** A page as the answer to a form: for what is recorded nowhere. */
export async function showInPlace({ console, sessions }: FormDeps, request: Request, page: Page): Promise<Answer> {
  const formToken = sessions.formToken(request);
  const shown = await console.render(page, {
    parameters: {},
    query: new URLSearchParams(),
    formToken,
    notice: undefined,
  });
  if (shown === undefined) throw problems.notFound();
  return html(200, shown.text);
}

/** Throws 403 for a form that is none of ours, or of another session. */
export function checkFormToken({ sessions }: FormDeps, request: Request, given: string): void {
  const wanted = sessions.formToken(request);
  const [one, other] = [Buffer.from(wanted ?? ""), Buffer.from(given)];
  if (wanted === undefined || one.length !== other.length || !timingSafeEqual(one, other)) throw problems.foreignSite();
}

function noticeOf(said: string | Notice): Notice {
  return typeof said === "string" ? { text: said, isFault: false } : said;
}

/** What the service refuses, with a way on; throws what is a fault of ours. */
export function faultNotice(fault: unknown): Notice {
  const problem = problemOf(fault);
  if (problem === undefined) throw fault;
  const { words = problem.message, wayOn } = problem.people;
  return { text: words, isFault: true, ...(wayOn === undefined ? {} : { wayOn }) };
}
