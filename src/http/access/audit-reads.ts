import { createHash } from "node:crypto";
import type { ReadResource } from "../../../events/access.ts";
import type { EventMetadata } from "../../log/event-log.ts";
import { classifyError } from "../../log/error-kind.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import type { Clock } from "../../platform/clock.ts";
import { appendRead, type Append, type PersonalRead } from "../../privacy/read-audit.ts";
import type { AppDeps } from "../deps.ts";
import { toHttpResponse } from "../server/answer.ts";
import type { RequestContext } from "../server/endpoint.ts";
import { problems } from "../server/problem.ts";
import { ANONYMOUS } from "./bearer-tokens.ts";

/** With personal data: an answer, or a page of now in place of one of a moment that there is not. All else shows none. */
const DISCLOSING: readonly number[] = [200, 400];

/**
 * Records who reads personal data, after an answer is made and before any of it is sent. Where the log does not take that,
 * the caller gets the problem 503 in place of the answer.
 */
export function createReadHook({ eventIntake, clock, sessions }: AppDeps) {
  const append: Append = (stream, newEvents, metadata) =>
    eventIntake.append(newEvents, { metadata, key: undefined }, { stream });
  const record = createReadAudit(append, clock);
  return async (call: RequestContext, returned: unknown): Promise<void> => {
    const { personalRead } = call.endpoint;
    if (!personalRead || call.disclosed === "nothing") return;
    const { status, stream } = toHttpResponse(returned);
    // A search that leads to the only page says that there is one.
    const isLeading = status === 303 && call.disclosed !== undefined;
    const { request, metadata } = call;
    if (!isLeading && (request.method === "HEAD" || !DISCLOSING.includes(status))) return;
    // A page is asked for with a session, which is no caller of events.
    const signedIn = metadata.caller === ANONYMOUS ? sessions.tokenOf(request)?.name : undefined;
    const read = {
      resource: personalRead,
      ...omitUndefined({ filters: filtersIn(call) }),
      ...call.disclosed,
    } as PersonalRead;
    const { pathname, search } = new URL(request.url);
    try {
      await record(read, { ...metadata, ...omitUndefined({ caller: signedIn }) }, pathname + search);
    } catch (fault) {
      await stream?.cancel();
      // The caller sees nothing and may ask again, also where the read may be recorded.
      throw classifyError(fault) === "in_doubt" ? problems.logUnavailable(true) : fault;
    }
  };
}

/** Only names that the endpoint declares: what else a caller writes there may name a recipient. */
function filtersIn({ request, endpoint }: RequestContext): string[] | undefined {
  const { searchParams } = new URL(request.url);
  const names = Object.keys(endpoint.query ?? {}).filter((name) => (searchParams.get(name) ?? "") !== "");
  return names.length === 0 ? undefined : names;
}

/** An open page of the console asks for itself whenever the log grows: that is one read in so much time. */
export const SAME_READ_MS = 15 * 60_000;

/** Recorded each time: no open page asks for them by itself, and what one shows another one may not. */
const RECORDED_EACH_TIME: readonly ReadResource[] = ["export", "suppressions", "preview"];

/** Reads that are remembered: with 44 characters each they stay below 2 MiB. Past that, one may be recorded twice. */
const REMEMBERED_MAX = 10_000;

/**
 * Returns what records reads for the requests of one instance, and resolves once a read is on disk. The same request of the
 * same caller, about the same recipient, is recorded once in each {@link SAME_READ_MS} of the clock, an export or a preview each time.
 * Throws what `append` throws.
 */
function createReadAudit(append: Append, clock: Clock) {
  let interval = -1;
  let recorded = new Map<string, Promise<unknown>>();

  return async (read: PersonalRead, metadata: EventMetadata, request: string): Promise<void> => {
    const now = Math.floor(clock() / SAME_READ_MS);
    if (now !== interval || recorded.size >= REMEMBERED_MAX) recorded = new Map();
    interval = now;
    // A hash, since it names a recipient.
    const text = JSON.stringify([metadata.caller, request, read.recipient]);
    const hash = createHash("sha256").update(text).digest("base64");
    const known = RECORDED_EACH_TIME.includes(read.resource) ? undefined : recorded.get(hash);
    const appended = known ?? appendRead(append, read, metadata);
    const own = recorded;
    own.set(hash, appended);
    try {
      await appended;
    } catch (fault) {
      own.delete(hash);
      throw fault;
    }
  };
}
