import { Type } from "@sinclair/typebox";
import { kindOf } from "../../log/error-kind.ts";
import type { EventLog } from "../../log/event-log.ts";
import type { Projector } from "../../projector/projector.ts";
import { json } from "../server/answer.ts";
import type { Operation } from "../server/endpoint.ts";
import { RETRY_LATER } from "../server/problem.ts";
import type { RequestLog } from "../server/request-log.ts";
import { oneOf } from "./schema.ts";

/** Events that the projections may be behind the log: about a second of the fastest intake. */
export const BEHIND_MAX = 10_000;

export const livez: Operation<unknown> = {
  id: "getLiveness",
  tag: "service",
  summary: "Whether the process answers.",
  description:
    "Liveness probe: a supervisor restarts the service when it fails. Does not check the log or the networks.",
  answers: { 200: { says: "It does.", schema: Type.Object({ status: oneOf("ok") }) } },
  problems: [],
  handle: () => json(200, { status: "ok" }),
};

export interface ReadinessDeps {
  readonly eventLog: EventLog;
  readonly projector: Projector;
  readonly requestLog: RequestLog;
  /** Aborts when the service begins to stop. */
  readonly stopping: AbortSignal;
}

/** What has to hold for requests to be sent here, each with the function that finds out. */
const CHECKS = {
  /** The service is not about to stop. */
  running: async ({ stopping }: ReadinessDeps) => !stopping.aborted,
  log_writable: ({ requestLog }: ReadinessDeps) => requestLog.isWritable(),
  projections_caught_up: async ({ eventLog, projector }: ReadinessDeps) =>
    (await eventLog.store.head()).position - projector.position <= BEHIND_MAX,
} as const;

const readiness = Type.Object({
  status: oneOf("ok", "unavailable"),
  checks: Type.Object({
    running: Type.Boolean(),
    log_writable: Type.Boolean(),
    projections_caught_up: Type.Boolean(),
  }),
});

export const readyz: Operation<ReadinessDeps> = {
  id: "getReadiness",
  tag: "service",
  summary: "Whether requests may be sent here.",
  description:
    "For a load balancer: the service is not stopping, the log takes what comes, and what is answered is of now. A channel " +
    "that is suspended does not matter here, since clicks are recorded all the same: `/api/health` shows it.",
  answers: {
    200: { says: "They may.", schema: readiness },
    503: { says: "They may not.", schema: readiness },
  },
  problems: [],
  async handle(deps) {
    const names = Object.keys(CHECKS) as (keyof typeof CHECKS)[];
    const found = await Promise.all(names.map(async (name) => [name, await holds(CHECKS[name](deps))] as const));
    const isReady = found.every(([, isSo]) => isSo);
    const status = isReady ? "ok" : "unavailable";
    return json(isReady ? 200 : 503, { status, checks: Object.fromEntries(found) }, isReady ? undefined : RETRY_LATER);
  },
};

/** What cannot be found out because the log is out of reach does not hold. */
async function holds(check: Promise<boolean>): Promise<boolean> {
  try {
    return await check;
  } catch (fault) {
    if (kindOf(fault) === undefined) throw fault;
    return false;
  }
}
