import { timingSafeEqual } from "node:crypto";
import { Type, type Static } from "@sinclair/typebox";
import type { Notice } from "../console/view.ts";
import type { Clock } from "../platform/clock.ts";
import { redirect } from "./answer.ts";
import { formBody } from "./body.ts";
import { createEncryptedCookie, type EncryptedCookie } from "./encrypted-cookie.ts";
import { post, type PostOperation } from "./endpoint.ts";
import { problemOf, problems } from "./problem.ts";
import type { Sessions } from "./session.ts";

/** What became of a form, kept by the browser until the page that it leads to has shown it. */
export type Notices = EncryptedCookie<Notice>;

const COOKIE = {
  name: "reachlog_notice",
  keyName: "console-notice",
  path: "/",
  lifetimeSeconds: 60,
  sameSite: "strict",
} as const;

export function createNotices(masterKey: Uint8Array, isSecure: boolean, clock: Clock): Notices {
  return createEncryptedCookie<Notice>(COOKIE, masterKey, isSecure, clock);
}

export interface FormDeps {
  readonly sessions: Sessions;
  readonly notices: Notices;
}

/** What a form fills in, by name. Boxes that are not ticked are absent. */
export type Fields = Readonly<Record<string, string>>;

interface FormOptions {
  /** The body that the operation takes for these fields. */
  readonly body: (fields: Fields) => unknown;
  /** What was done, in a sentence; `answer`: the body that a program would have got. */
  readonly says: (answer: never, fields: Fields) => string;
}

/** Fields of every form, beside its own. */
const fieldsSchema = Type.Intersect([
  Type.Object({
    form_token: Type.String({ maxLength: 100, description: "Proves that the form is of a page of ours." }),
    back: Type.String({
      maxLength: 2_000,
      pattern: String.raw`^/(?![/\\])`,
      description: "The page to lead back to.",
      examples: ["/people"],
    }),
  }),
  Type.Record(Type.String(), Type.String()),
]);

type FormFields = Static<typeof fieldsSchema>;

/**
 * A form of the console: does what an operation of the API does, in the name of whoever signed in, and leads back to a page
 * that says what came of it. So the console can do nothing that a program cannot.
 */
export function formOf<Deps, Body>(
  operation: PostOperation<Deps, Body>,
  { body: bodyOf, says }: FormOptions,
): PostOperation<Deps & FormDeps, FormFields> {
  return post({
    id: `${operation.id}ByForm`,
    does: operation.id,
    tag: "service",
    summary: `${operation.summary} As a form of the console.`,
    description: "Does what the operation of the API does, and leads back to the page with a notice.",
    body: formBody(fieldsSchema),
    answers: { 303: { says: "Back to the page.", headers: ["location", "set-cookie"] } },
    problems: ["unauthorized", "foreignSite"],
    async handle(deps: Deps & FormDeps, asked) {
      const { sessions, notices } = deps;
      const { form_token, back, ...fields } = asked.body;
      checkToken(sessions.formToken(asked.request), form_token);
      const notice = await noticeOf(async () => {
        const answer = await operation.handle(deps, { ...asked, body: operation.body.fit(bodyOf(fields)) as Body });
        return says(JSON.parse(answer.body) as never, fields);
      });
      return redirect(303, back, { "set-cookie": notices.give(notice) });
    },
  });
}

/** Throws 403 for a form that is none of ours, or of another session. */
function checkToken(wanted: string | undefined, given: string): void {
  const [one, other] = [Buffer.from(wanted ?? ""), Buffer.from(given)];
  if (wanted === undefined || one.length !== other.length || !timingSafeEqual(one, other)) throw problems.foreignSite();
}

async function noticeOf(work: () => Promise<string>): Promise<Notice> {
  try {
    return { text: await work(), isFault: false };
  } catch (fault) {
    const problem = problemOf(fault);
    if (problem === undefined) throw fault;
    return { text: problem.message, isFault: true };
  }
}
