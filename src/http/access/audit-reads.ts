import { createHash } from "node:crypto";
import type { ReadResource } from "../../../events/authentication-keys-and-data-reads.ts";
import type { EventMetadata } from "../../log/event-log.ts";
import { classifyError } from "../../log/classify-store-error.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import type { Clock } from "../../platform/clock-ids-and-timers.ts";
import { appendRead, type Append, type PersonalRead } from "../../privacy/record-personal-data-read.ts";
import type { HttpContext } from "../http-context.ts";
import { toHttpResponse } from "../server/http-response.ts";
import type { RequestContext } from "../server/endpoint.ts";
import { problems } from "../server/problem.ts";
import { ANONYMOUS } from "./bearer-tokens.ts";

/**
 * Statuses of answers that may show personal data: 200, the 202 of a run for named recipients, and the 400 of a console
 * page, which shows today's data if the requested moment is invalid.
 */
const DISCLOSING: readonly number[] = [200, 202, 400];

/**
 * Creates the hook that records who reads personal data, before any byte of the finished answer is sent. If the log
 * does not accept the record, the caller gets the problem 503 instead of the answer.
 */
export function createReadHook({ eventIntake, clock, sessions }: HttpContext) {
  const append: Append = (stream, newEvents, metadata) =>
    eventIntake.append(newEvents, { metadata, key: undefined }, { stream });
  const record = createReadAudit(append, clock);
  return async (call: RequestContext, returned: unknown): Promise<void> => {
    const { personalRead } = call.endpoint;
    if (!personalRead || call.disclosed === "nothing") return;
    const { status, stream } = toHttpResponse(returned);
    // A search that redirects to its only result discloses that this result exists.
    const isLeading = status === 303 && call.disclosed !== undefined;
    const { request, metadata } = call;
    if (!isLeading && (request.method === "HEAD" || !DISCLOSING.includes(status))) return;
    // Requests in a session of the console name no caller, so the reader is the token with which the browser signed in.
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
      // If the append is in doubt, the log may hold the record of this read. The caller got no data in either case, so
      // the answer says that nothing was done and suggests a retry.
      throw classifyError(fault) === "in_doubt" ? problems.logUnavailable(true) : fault;
    }
  };
}

/**
 * Returns the names of the query parameters that the endpoint declares and the caller has set. Undeclared names are
 * left out, because a caller may write a recipient's name there.
 */
function filtersIn({ request, endpoint }: RequestContext): string[] | undefined {
  const { searchParams } = new URL(request.url);
  const names = Object.keys(endpoint.query ?? {}).filter((name) => (searchParams.get(name) ?? "") !== "");
  return names.length === 0 ? undefined : names;
}

/**
 * Time in ms within which a caller's repeats of a request count as one read, because an open page of the console
 * reloads whenever the log grows.
 */
export const SAME_READ_MS = 15 * 60_000;

/**
 * Kinds of reads that are recorded at every request, because no open page repeats them by itself, and each answer may
 * show other data.
 */
const RECORDED_EACH_TIME: readonly ReadResource[] = ["export", "suppressions", "preview"];

/**
 * Maximum number of remembered reads, whose repeats are not recorded: at 44 characters each they take less than 2 MiB.
 * With more, a read may be recorded twice.
 */
const REMEMBERED_MAX = 10_000;

/**
 * Records reads of personal data at one instance; resolves once a read is on disk. A request that a caller repeats
 * counts once per {@link SAME_READ_MS}, except for {@link RECORDED_EACH_TIME}. Throws what `append` throws.
 */
function createReadAudit(append: Append, clock: Clock) {
  let interval = -1;
  let recorded = new Map<string, Promise<unknown>>();

  return async (read: PersonalRead, metadata: EventMetadata, request: string): Promise<void> => {
    const now = Math.floor(clock() / SAME_READ_MS);
    if (now !== interval || recorded.size >= REMEMBERED_MAX) recorded = new Map();
    interval = now;
    // The text is hashed, because the request names a recipient.
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
