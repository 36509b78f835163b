import { http, HttpResponse } from "msw";
import type { SandboxClock } from "./clock.ts";
import { joined, render, type Rendered, type Rule } from "./render-chat-markup.ts";
import { ORIGINS, type Refusals } from "./network-origins-and-refusals.ts";
import { createBucket, takeTurn } from "./rate-limits.ts";
import { createRecorded } from "./record-received.ts";
import { isRecord, membersOf, parseJson, withRetryAfter } from "./read-request.ts";

/**
 * Number of requests that Teams accepts per second:
 * https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using#rate-limiting-for-connectors
 */
const DEFAULT_LIMIT = 4;
const PERIOD_MS = 1_000;

/**
 * Creates the state of a Teams with one workflow, made from the template "post to a channel when a webhook request is
 * received".
 */
export function createTeamsState(clock: SandboxClock) {
  return {
    clock,
    workflow: "0123456789abcdef0123456789abcdef",
    signature: "sandboxSignature0123456789-abcdefghijklmnop",
    messages: createRecorded<Rendered & { readonly at: number }>(),
    /**
     * Requests that the trigger accepted but the workflow failed to post. The sender does not learn of such a failure.
     */
    failures: createRecorded<{ readonly text: string; readonly at: number }>(),
    bucket: createBucket(),
    /** Maximum number of requests per second. */
    limit: DEFAULT_LIMIT,
  };
}

export type TeamsState = ReturnType<typeof createTeamsState>;

export function teamsHandlers(state: TeamsState) {
  return [
    http.post(`${ORIGINS.teams}/workflows/:workflow/triggers/manual/paths/invoke`, async ({ request, params }) => {
      if (params["workflow"] !== state.workflow) return noWorkflow();
      if (new URL(request.url).searchParams.get("sig") !== state.signature) return wrongSignature();
      const { bucket, limit, clock } = state;
      const wait = takeTurn(clock.now(), { bucket, limit, periodMs: PERIOD_MS });
      return wait > 0 ? rateLimited(Math.ceil(wait / 1000)) : trigger(state, await request.text());
    }),
  ];
}

/** Accepts a request, which starts the workflow. Only the workflow's run history shows if it posted the message. */
function trigger({ clock, messages, failures }: TeamsState, body: string): Response {
  const why = mismatchOf(body);
  if (why !== undefined) {
    const words = `The input body for trigger 'manual' did not match its schema: ${why}`;
    return teamsError(400, "TriggerInputSchemaMismatch", words);
  }
  const at = clock.now();
  const shown = renderTeams(body);
  if ("failure" in shown) failures.add({ text: shown.failure, at });
  else messages.add({ ...shown, at });
  const run = `0858${String(messages.total + failures.total).padStart(24, "0")}CU00`;
  return new Response(null, { status: 202, headers: { "x-ms-workflow-run-id": run } });
}

function mismatchOf(body: string): string | undefined {
  const message = parseJson(body);
  if (!isRecord(message)) return "no object in JSON";
  const { type, attachments } = message;
  if (type !== "message") return "type wants to be message";
  const isList = Array.isArray(attachments) && attachments.every((one) => typeof one === "object" && one !== null);
  return isList ? undefined : "attachments wants a list of objects";
}

/**
 * Approximate maximum size of a message that Teams accepts, in bytes:
 * https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
 */
const CARD_BYTES_MAX = 28 * 1024;

const first = (match: RegExpExecArray): string => match[1] ?? match[2] ?? "";

/**
 * Rules for the date macros in any text, which Teams shows in the reader's language:
 * https://learn.microsoft.com/adaptive-cards/authoring-cards/text-features
 */
const TEAMS_MACROS: readonly Rule[] = [
  { mark: "date", pattern: /\{\{(?:DATE|TIME)\([^)}]*\)\}\}/y, shows: () => "a date in words" },
];

/**
 * Rules of the markdown in a TextBlock:
 * https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/cards/cards-format
 */
const TEAMS_MARKDOWN: readonly Rule[] = [
  ...TEAMS_MACROS,
  { pattern: /\\([^\dA-Za-z\s])/y, shows: first },
  { mark: "masked link", pattern: /\[([^\]]+)\]\(([^)\s]+)\)/y, inner: first },
  { mark: "list", pattern: /\s*(?:[-*+]|\d+\.) +/y, lineStart: true, shows: () => "• " },
  { mark: "bold", pattern: /\*\*([^*]+)\*\*|__([^_]+)__/y, inner: first },
  { mark: "italic", pattern: /\*([^*\s][^*]*)\*|_([^_\s][^_]*)_/y, inner: first },
];

interface CardElement {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly inlines?: unknown;
}

/** Returns what readers see of a posted card, or the reason why the workflow fails to post it. */
export function renderTeams(body: string): Rendered | { readonly failure: string } {
  if (Buffer.byteLength(body) > CARD_BYTES_MAX) return { failure: "RequestEntityTooLarge" };
  const { attachments } = parseJson(body) as { attachments: readonly { contentType?: unknown; content?: unknown }[] };
  const card = attachments.length === 1 ? attachments[0] : undefined;
  if (card?.contentType !== "application/vnd.microsoft.card.adaptive") return { failure: "no adaptive card" };
  const { type, version, body: elements } = membersOf(card.content);
  if (type !== "AdaptiveCard" || typeof version !== "string") return { failure: "a bad adaptive card" };
  if (!Array.isArray(elements) || elements.length === 0) return { failure: "an empty adaptive card" };
  const lines = (elements as CardElement[]).map(renderElement).filter((line) => line !== undefined);
  return lines.length === elements.length ? joined(lines, "\n") : { failure: "an unknown element" };
}

function renderElement({ type, text, inlines }: CardElement): Rendered | undefined {
  if (type === "TextBlock") return typeof text === "string" ? render(text, TEAMS_MARKDOWN) : undefined;
  if (type !== "RichTextBlock" || !Array.isArray(inlines) || inlines.length === 0) return undefined;
  const runs = (inlines as CardElement[]).flatMap((run) =>
    run.type === "TextRun" && typeof run.text === "string" ? [render(run.text, TEAMS_MACROS)] : [],
  );
  return runs.length === inlines.length ? joined(runs, "") : undefined;
}

/** Answers with an error of the Microsoft service that runs workflows. */
export function teamsError(status: number, code: string, message: string): Response {
  return HttpResponse.json({ error: { code, message } }, { status });
}

const wrongSignature = () =>
  teamsError(401, "DirectApiAuthorizationRequired", "The request must be authenticated by a valid signature.");

const noWorkflow = () => teamsError(404, "WorkflowNotFound", "The workflow could not be found.");

function rateLimited(retryAfterS: number | undefined): Response {
  const words = "The number of requests is over the limit.";
  return withRetryAfter(teamsError(429, "WorkflowTriggerRequestsThrottled", words), retryAfterS);
}

export const teamsRefusals = {
  "429": ({ retryAfter }) => rateLimited(retryAfter),
  "500": () => teamsError(500, "InternalServerError", "Encountered internal server error."),
  token_revoked: wrongSignature,
  workflow_deleted: noWorkflow,
  workflow_off: () =>
    teamsError(400, "WorkflowTriggerIsNotEnabled", "Could not execute workflow trigger 'manual': it is 'Disabled'."),
} satisfies Refusals;
