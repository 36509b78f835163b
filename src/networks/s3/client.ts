import { hash } from "node:crypto";
import { AwsV4Signer } from "aws4fetch";
import { backoffMs, type Clock } from "../../platform/clock-ids-and-timers.ts";
import type { Secret } from "../../platform/secret.ts";
import { ServiceError } from "../../platform/service-error.ts";
import { NetworkFault, type NetworkFaultKind, type ObjectAnswer, type ObjectFetch } from "../safe-fetch.ts";

export interface S3Access {
  /** Base URL of the object store, without a slash at its end; the bucket follows in the path. */
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: Secret;
}

export interface S3Deps {
  readonly objectFetch: ObjectFetch;
  readonly clock: Clock;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Returns a random number from 0 to 1, for the waits between attempts. */
  readonly random: () => number;
}

export interface S3Request {
  readonly method: "GET" | "PUT" | "DELETE";
  readonly bucket: string;
  /** Key of the object; empty for the bucket itself. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

/**
 * Maximum size of an object in bytes. Files are held in memory whole: a sealed segment, or the keys of a million and a
 * half recipients.
 */
export const OBJECT_BYTES_MAX = 256 * 1024 * 1024;

/** Time-out of one request to the object store, enough for the largest file at 2.3 MB a second. */
const TIMEOUT_MS = 120_000;

/**
 * Maximum number of attempts of one request to the object store. Waits between them take up to 22 seconds in all: a
 * store that asks to slow down does so for moments.
 */
export const REQUEST_ATTEMPTS_MAX = 5;
const BACKOFF = { baseMs: 500, factor: 3 };

const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/** Object store's error code for a conflict: another request for the same key was in progress. */
const CONFLICT = "ConditionalRequestConflict";

/** Network faults that do not pass by themselves, so the request is not repeated. */
const FINAL_FAULTS: ReadonlySet<NetworkFaultKind> = new Set(["forbidden", "certificate", "redirect"]);

export type S3Client = ReturnType<typeof createS3Client>;

/**
 * Creates a client of an S3-compatible store. Requests are signed with the body's hash (AWS Signature Version 4). It
 * throws a ServiceError (unavailable, configuration, rejected), which names bucket and key, never the access.
 */
export function createS3Client(access: S3Access, { objectFetch, clock, sleep, random }: S3Deps) {
  const attempt = async (request: S3Request): Promise<ObjectAnswer | NetworkFault> => {
    const { url, headers } = await sign(access, request, clock());
    const { method, body } = request;
    try {
      return await objectFetch(url, { method, headers, body, timeoutMs: TIMEOUT_MS, answerBytesMax: OBJECT_BYTES_MAX });
    } catch (fault) {
      if (fault instanceof NetworkFault) return fault;
      throw fault;
    }
  };

  // Returns the first answer that another attempt would not change, even if it is a refusal.
  return async (request: S3Request): Promise<ObjectAnswer> => {
    for (let tried = 1; ; tried++) {
      const found = await attempt(request);
      const isPassing = mayRetry(found);
      if (!isPassing && !(found instanceof NetworkFault)) return found;
      if (!isPassing || tried === REQUEST_ATTEMPTS_MAX) throw toStoreFault(request, found);
      await sleep(backoffMs(tried, random(), BACKOFF), new AbortController().signal);
    }
  };
}

async function sign(
  { endpoint, region, accessKeyId, secretAccessKey }: S3Access,
  { method, bucket, key, query = {}, headers = {}, body }: S3Request,
  now: number,
): Promise<{ readonly url: string; readonly headers: Headers }> {
  const url = new URL(`${endpoint}/${bucket}${key === "" ? "" : `/${key}`}`);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  const signer = new AwsV4Signer({
    method,
    url: url.href,
    headers: { ...headers, "x-amz-content-sha256": hash("sha256", body ?? new Uint8Array()) },
    accessKeyId,
    secretAccessKey: secretAccessKey.reveal(),
    service: "s3",
    region,
    datetime: new Date(now).toISOString().replace(/[:-]|\.\d{3}/g, ""),
  });
  const signed = await signer.sign();
  return { url: signed.url.href, headers: signed.headers };
}

function mayRetry(found: ObjectAnswer | NetworkFault): boolean {
  if (found instanceof NetworkFault) return !FINAL_FAULTS.has(found.kind);
  return found.truncated || RETRYABLE_STATUSES.has(found.status) || readErrorCode(found) === CONFLICT;
}

/**
 * Returns the code in the body of an object store's error, such as `SlowDown`; empty if there is no error or no code.
 * Other parts of the body may repeat the request's headers.
 */
export function readErrorCode({ status, bytes }: ObjectAnswer): string {
  if (status < 300) return "";
  return /<Code>([A-Za-z0-9]{1,60})<\/Code>/.exec(Buffer.from(bytes).toString("latin1"))?.[1] ?? "";
}

const REMEDIES: Readonly<Record<string, string>> = {
  InvalidAccessKeyId: "check AWS_ACCESS_KEY_ID",
  SignatureDoesNotMatch: "check AWS_SECRET_ACCESS_KEY",
  AccessDenied: "the access key needs the right to list the bucket, and to read, write and delete objects",
  NoSuchBucket: "create the bucket, or check the address",
  PermanentRedirect: "check AWS_REGION",
  AuthorizationHeaderMalformed: "check AWS_REGION",
  RequestTimeTooSkewed: "set this machine's clock",
  NotImplemented: "the store needs conditional writes (If-None-Match)",
};

export function toStoreFault({ method, bucket, key }: S3Request, found: ObjectAnswer | NetworkFault): ServiceError {
  const place = `${method} s3://${bucket}/${key}`;
  if (found instanceof NetworkFault) {
    const remedy = found.kind === "redirect" ? ": check AWS_REGION and AWS_ENDPOINT_URL" : "";
    return new ServiceError("unavailable", `${place}: ${found.message}${remedy}`);
  }
  const code = readErrorCode(found);
  const said = `${place}: the store answered ${found.status}${code === "" ? "" : ` ${code}`}`;
  if (found.truncated) return new ServiceError("unavailable", `${said}, and its answer broke off`);
  const remedy = REMEDIES[code];
  if (remedy !== undefined) return new ServiceError("configuration", `${said}: ${remedy}`);
  return new ServiceError(RETRYABLE_STATUSES.has(found.status) ? "unavailable" : "rejected", said);
}
