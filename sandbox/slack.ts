import { http } from "msw";
import type { SandboxClock } from "./clock.ts";
import { renderSlack, type ShownText } from "./render-chat-markup.ts";
import { ORIGINS, type Refusals } from "./network-origins-and-refusals.ts";
import { createBucket, takeTurn } from "./rate-limits.ts";
import { createRecorded } from "./record-received.ts";
import { isJson, isRecord, jsonOf, membersOf, withRetryAfter } from "./read-request.ts";

/**
 * Number of messages that Slack accepts in 5 seconds. Slack documents "1 per second, short bursts allowed":
 * https://api.slack.com/apis/rate-limits
 */
const DEFAULT_LIMIT = 5;
const PERIOD_MS = 5_000;

/** Creates the state of a Slack with one incoming webhook. */
export function createSlackState(clock: SandboxClock) {
  return {
    clock,
    /** Path of the webhook, which is a secret. */
    path: "/services/T0SANDBOX/B0SANDBOX/sandboxWebhookSecret",
    messages: createRecorded<ShownText>(),
    bucket: createBucket(),
    /** Maximum number of messages in 5 seconds, at once or spread. */
    limit: DEFAULT_LIMIT,
  };
}

export type SlackState = ReturnType<typeof createSlackState>;

export function slackHandlers(state: SlackState) {
  return [
    http.post(`${ORIGINS.slack}/services/*`, async ({ request }) => {
      const { pathname } = new URL(request.url);
      if (pathname !== state.path) return plain(404, sameTeam(pathname, state.path) ? "no_service" : "no_team");
      const { bucket, limit, clock } = state;
      const wait = takeTurn(clock.now(), { bucket, limit, periodMs: PERIOD_MS });
      return wait > 0 ? rateLimited(Math.ceil(wait / 1000)) : post(state, request);
    }),
  ];
}

function sameTeam(one: string, other: string): boolean {
  return one.split("/")[2] === other.split("/")[2];
}

async function post(state: SlackState, request: Request): Promise<Response> {
  const body = isJson(request) ? await jsonOf(request) : undefined;
  const fault = faultOf(body);
  if (fault !== undefined) return plain(400, fault);
  const { text: shown, marks } = renderSlack(body as Parameters<typeof renderSlack>[0]);
  state.messages.add({ text: textOf(body), shown, marks, at: state.clock.now() });
  return plain(200, "ok");
}

/** Maximum number of blocks in a message: https://docs.slack.dev/reference/block-kit/blocks */
const BLOCKS_MAX = 50;
const SECTION_CHARS_MAX = 3_000;
const TEXT_CHARS_MAX = 40_000;

interface Block {
  readonly type?: unknown;
  readonly text?: { readonly type?: unknown; readonly text?: unknown };
}

/** Returns the error code with which Slack refuses a body; undefined if it accepts it. */
function faultOf(body: unknown): string | undefined {
  if (!isRecord(body)) return "invalid_payload";
  const { text, blocks } = body;
  if (text !== undefined && typeof text !== "string") return "invalid_payload";
  if (blocks !== undefined && (!Array.isArray(blocks) || blocks.length > BLOCKS_MAX)) return "invalid_blocks";
  const sections = (blocks ?? []) as Block[];
  if (!sections.every(isBlock)) return "invalid_blocks";
  if (text !== undefined && text.length > TEXT_CHARS_MAX) return "msg_too_long";
  const hasText = text !== undefined && text.trim() !== "";
  return hasText || sections.length > 0 ? undefined : "no_text";
}

function isBlock({ type, text }: Block): boolean {
  if (typeof type !== "string") return false;
  if (type !== "section" || text === undefined) return true;
  return typeof text.text === "string" && text.text !== "" && text.text.length <= SECTION_CHARS_MAX;
}

/** Returns the text of the message and of all its blocks. */
function textOf(body: unknown): string {
  const { text, blocks = [] } = membersOf(body) as { text?: string; blocks?: Block[] };
  const words = blocks.map((block) => block.text?.text).filter((words) => typeof words === "string");
  return [text ?? "", ...words].join("\n");
}

/**
 * Answers in plain text, as Slack's webhooks do:
 * https://api.slack.com/changelog/2016-05-17-changes-to-errors-for-incoming-webhooks
 */
export function plain(status: number, text: string): Response {
  return new Response(text, { status, headers: { "content-type": "text/plain; charset=utf-8" } });
}

function rateLimited(retryAfterS: number | undefined): Response {
  return withRetryAfter(plain(429, "rate_limited"), retryAfterS);
}

export const slackRefusals = {
  "429": ({ retryAfter }) => rateLimited(retryAfter),
  "500": () => plain(500, "rollup_error"),
  token_revoked: () => plain(404, "no_service"),
  channel_archived: () => plain(410, "channel_is_archived"),
  action_prohibited: () => plain(403, "action_prohibited"),
} satisfies Refusals;
