import { http } from "msw";
import { createBucket, type Bucket } from "../bucket.ts";
import type { SandboxClock } from "../clock.ts";
import { createArrivals, TEXTS_KEPT, type Arrivals } from "../journal.ts";
import { ORIGINS } from "../network.ts";
import { plain, rateLimited } from "./answers.ts";
import { faultOf, textOf } from "./message.ts";
import { renderSlack } from "./mrkdwn.ts";

export interface SlackMessage {
  /** Everything of it, as it was sent. */
  readonly text: string;
  /** What readers see. */
  readonly shown: string;
  readonly marks: readonly string[];
  readonly at: number;
}

export interface SlackState {
  readonly clock: SandboxClock;
  /** The webhook's path, which is its secret. */
  readonly path: string;
  readonly messages: Arrivals<SlackMessage>;
  readonly bucket: Bucket;
  /** Messages in 5 seconds, at once or spread. */
  limit: number;
}

/** "1 per second, short bursts allowed": https://api.slack.com/apis/rate-limits */
const DEFAULT_LIMIT = 5;
const PERIOD_MS = 5_000;

export function createSlackState(clock: SandboxClock): SlackState {
  return {
    clock,
    path: "/services/T0SANDBOX/B0SANDBOX/sandboxWebhookSecret",
    messages: createArrivals(TEXTS_KEPT),
    bucket: createBucket(),
    limit: DEFAULT_LIMIT,
  };
}

/** One incoming webhook. */
export function slackHandlers(state: SlackState) {
  return [
    http.post(`${ORIGINS.slack}/services/*`, async ({ request }) => {
      const { pathname } = new URL(request.url);
      if (pathname !== state.path) return plain(404, sameTeam(pathname, state.path) ? "no_service" : "no_team");
      const rate = { limit: state.limit, periodMs: PERIOD_MS };
      const now = state.clock.now();
      const wait = state.bucket.waitMs(now, rate);
      if (wait > 0) return rateLimited(Math.ceil(wait / 1000));
      state.bucket.take(now, rate);
      return post(state, request);
    }),
  ];
}

function sameTeam(one: string, other: string): boolean {
  return one.split("/")[2] === other.split("/")[2];
}

async function post(state: SlackState, request: Request): Promise<Response> {
  const isJson = /^application\/json\b/i.test(request.headers.get("content-type") ?? "");
  const body: unknown = isJson ? await request.json().catch(() => undefined) : undefined;
  const fault = faultOf(body);
  if (fault !== undefined) return plain(400, fault);
  const { text: shown, marks } = renderSlack(body as Parameters<typeof renderSlack>[0]);
  state.messages.add({ text: textOf(body), shown, marks, at: state.clock.now() });
  return plain(200, "ok");
}
