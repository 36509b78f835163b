import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/** A request as received; header names are in lower case. */
export interface SignedRequest {
  readonly method: string;
  /** Path as the client sent it. The text after the question mark is in `query`. */
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Error codes of S3 for a request whose signature is wrong. */
export type SignatureFault =
  | "AccessDenied"
  | "InvalidAccessKeyId"
  | "SignatureDoesNotMatch"
  | "RequestTimeTooSkewed"
  | "AuthorizationHeaderMalformed";

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;

/** Maximum difference between a request's time and the store's clock, in ms, as in AWS. */
const SKEW_MS_MAX = 15 * 60_000;

/** Headers that a signature must include, in addition to all that begin with `x-amz-`. */
const SIGNED_ALWAYS = ["host"];

/**
 * Checks an Authorization header (AWS Signature Version 4 for S3). `now` is in ms since the epoch. Returns undefined if
 * it is valid; the caller has to check the body's hash.
 */
export function checkSignature(
  request: SignedRequest,
  { accessKeyId, secretAccessKey }: Credentials,
  { region, now }: { readonly region: string; readonly now: number },
): SignatureFault | undefined {
  const { headers } = request;
  const [, id, day, scopeRegion, service, signedNames = "", signature = ""] =
    AUTHORIZATION.exec(headers["authorization"] ?? "") ?? [];
  const date = headers["x-amz-date"] ?? "";
  if (id === undefined || day === undefined || scopeRegion === undefined) return "AccessDenied";
  if (scopeRegion !== region || service !== "s3" || !date.startsWith(day)) return "AuthorizationHeaderMalformed";
  if (id !== accessKeyId) return "InvalidAccessKeyId";
  if (!(Math.abs(parseDate(date) - now) <= SKEW_MS_MAX)) return "RequestTimeTooSkewed";
  const names = signedNames.split(";");
  const wanted = [...SIGNED_ALWAYS, ...Object.keys(headers).filter((name) => name.startsWith("x-amz-"))];
  if (wanted.some((name) => !names.includes(name))) return "AccessDenied";
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", date, scope, sha256(canonicalRequest(request, names))].join("\n");
  const key = [region, "s3", "aws4_request"].reduce(hmac, hmac(`AWS4${secretAccessKey}`, day));
  return timingSafeEqual(hmac(key, text), Buffer.from(signature, "hex")) ? undefined : "SignatureDoesNotMatch";
}

/** Parses a time such as `20130524T000000Z` to ms since the epoch; NaN for other texts. */
function parseDate(date: string): number {
  return Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
}

function canonicalRequest({ method, path, query, headers }: SignedRequest, names: readonly string[]): string {
  const pairs = query.split("&").flatMap((part) => {
    if (part === "") return [];
    const [name = "", value = ""] = part.split("=");
    return [`${encode(name)}=${encode(value)}`];
  });
  return [
    method,
    path.split("/").map(encode).join("/"),
    pairs.toSorted().join("&"),
    ...names.map((name) => `${name}:${(headers[name] ?? "").trim().replaceAll(/ +/g, " ")}`),
    "",
    names.join(";"),
    headers["x-amz-content-sha256"] ?? "",
  ].join("\n");
}

/** Percent-encodes one part of a path or query: all but letters, digits and `-._~`. */
function encode(part: string): string {
  const text = decodeURIComponent(part.replaceAll("+", " "));
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

export function sha256(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
