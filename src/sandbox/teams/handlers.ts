import { http } from "msw";
import { createBucket, type Bucket } from "../bucket.ts";
import type { SandboxClock } from "../clock.ts";
import { createArrivals, TEXTS_KEPT, type Arrivals } from "../journal.ts";
import { ORIGINS } from "../network.ts";
import type { Rendered } from "../rendered.ts";
import { accepted, noWorkflow, rateLimited, wrongSchema, wrongSignature } from "./answers.ts";
import { renderTeams } from "./card.ts";

export interface TeamsState {
  readonly clock: SandboxClock;
  readonly workflow: string;
  readonly signature: string;
  readonly messages: Arrivals<Rendered & { readonly at: number }>;
  /** What was accepted, and then not posted by the workflow: whoever sent it is not told. */
  readonly failures: Arrivals<{ readonly text: string; readonly at: number }>;
  readonly bucket: Bucket;
  /** Requests in a second. */
  limit: number;
}

/** https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using#rate-limiting-for-connectors */
const DEFAULT_LIMIT = 4;
const PERIOD_MS = 1_000;

export function createTeamsState(clock: SandboxClock): TeamsState {
  return {
    clock,
    workflow: "0123456789abcdef0123456789abcdef",
    signature: "sandboxSignature0123456789-abcdefghijklmnop",
    messages: createArrivals(TEXTS_KEPT),
    failures: createArrivals(TEXTS_KEPT),
    bucket: createBucket(),
    limit: DEFAULT_LIMIT,
  };
}

/** The trigger of one workflow of the template "post to a channel when a webhook request is received". */
export function teamsHandlers(state: TeamsState) {
  return [
    http.post(`${ORIGINS.teams}/workflows/:workflow/triggers/manual/paths/invoke`, async ({ request, params }) => {
      if (params["workflow"] !== state.workflow) return noWorkflow();
      if (new URL(request.url).searchParams.get("sig") !== state.signature) return wrongSignature();
      const now = state.clock.now();
      const rate = { limit: state.limit, periodMs: PERIOD_MS };
      const wait = state.bucket.waitMs(now, rate);
      if (wait > 0) return rateLimited(Math.ceil(wait / 1000));
      state.bucket.take(now, rate);
      return trigger(state, await request.text());
    }),
  ];
}

function trigger(state: TeamsState, body: string): Response {
  const why = mismatchOf(body);
  if (why !== undefined) return wrongSchema(why);
  const at = state.clock.now();
  const shown = renderTeams(body);
  if ("failure" in shown) state.failures.add({ text: shown.failure, at });
  else state.messages.add({ ...shown, at });
  return accepted(`0858${String(state.messages.total + state.failures.total).padStart(24, "0")}CU00`);
}

function mismatchOf(body: string): string | undefined {
  try {
    const { type, attachments } = JSON.parse(body) as Readonly<Record<string, unknown>>;
    if (type !== "message") return "type wants to be message";
    const isList = Array.isArray(attachments) && attachments.every((one) => typeof one === "object" && one !== null);
    return isList ? undefined : "attachments wants a list of objects";
  } catch {
    return "no object in JSON";
  }
}
