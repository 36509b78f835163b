import { http, HttpResponse } from "msw";
import type { SandboxClock } from "./clock.ts";
import { createArrivals, type Arrivals } from "./journal.ts";
import { ORIGINS } from "./network.ts";
import { createWindows, type Windows } from "./window.ts";

export interface SlackState {
  readonly clock: SandboxClock;
  readonly path: string;
  readonly messages: Arrivals<{ readonly text: string; readonly at: number }>;
  readonly windows: Windows;
  /** Messages in `windowMs`; Slack documents one a second, with short bursts. */
  limit: number;
}

/** Bursts are allowed for a little while: so many messages in so many seconds. */
const WINDOW_MS = 5_000;
const DEFAULT_LIMIT = 5;

const BLOCKS_MAX = 50;
const SECTION_CHARS_MAX = 3_000;
const TEXT_CHARS_MAX = 40_000;

export function createSlackState(clock: SandboxClock): SlackState {
  return {
    clock,
    path: "/services/T0SANDBOX/B0SANDBOX/sandboxWebhookSecret",
    messages: createArrivals(),
    windows: createWindows(),
    limit: DEFAULT_LIMIT,
  };
}

export function slackHandlers(state: SlackState) {
  return [
    http.post(`${ORIGINS.slack}/services/:team/:app/:secret`, async ({ request }) => {
      if (new URL(request.url).pathname !== state.path) return plain(404, "no_service");
      const { allowed, resetAt } = state.windows.take("webhook", state.limit, WINDOW_MS, state.clock.now());
      if (!allowed) {
        const seconds = Math.max(1, Math.ceil((resetAt - state.clock.now()) / 1000));
        return plain(429, "rate_limited", { "retry-after": String(seconds) });
      }
      const body: unknown = await request.json().catch(() => undefined);
      const fault = faultOf(body);
      if (fault !== undefined) return plain(400, fault);
      state.messages.add({ text: textOf(body), at: state.clock.now() });
      return plain(200, "ok");
    }),
  ];
}

interface Block {
  readonly type?: unknown;
  readonly text?: { readonly type?: unknown; readonly text?: unknown };
}

function faultOf(body: unknown): string | undefined {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return "invalid_payload";
  const { text, blocks } = body as { text?: unknown; blocks?: unknown };
  if (blocks !== undefined && (!Array.isArray(blocks) || blocks.length > BLOCKS_MAX)) return "invalid_blocks";
  const sections = (blocks ?? []) as Block[];
  if (sections.some((block) => typeof block.type !== "string")) return "invalid_blocks";
  const tooLong = (block: Block): boolean =>
    block.type === "section" && (typeof block.text?.text !== "string" || block.text.text.length > SECTION_CHARS_MAX);
  if (sections.some(tooLong)) return "invalid_blocks";
  if (typeof text === "string" && text.length > TEXT_CHARS_MAX) return "msg_too_long";
  const hasText = typeof text === "string" && text.trim() !== "";
  return hasText || sections.length > 0 ? undefined : "no_text";
}

function textOf(body: unknown): string {
  const { text, blocks } = body as { text?: string; blocks?: Block[] };
  const words = (blocks ?? []).map((block) => block.text?.text).filter((words) => typeof words === "string");
  return [text ?? "", ...words].join("\n");
}

function plain(status: number, text: string, headers: Record<string, string> = {}) {
  return new HttpResponse(text, { status, headers: { "content-type": "text/html; charset=utf-8", ...headers } });
}

/** What Slack answers when a fault is switched on. */
export function slackRefusal(kind: string, retryAfter: number | undefined): Response | undefined {
  switch (kind) {
    case "429":
      return plain(429, "rate_limited", retryAfter === undefined ? {} : { "retry-after": String(retryAfter) });
    case "500":
      return plain(500, "rollup_error");
    case "502_html":
      return plain(502, "<html><body><h1>502 Bad Gateway</h1></body></html>");
    case "channel_archived":
      return plain(410, "channel_is_archived");
    case "token_revoked":
      return plain(404, "no_service");
    default:
      return undefined;
  }
}
