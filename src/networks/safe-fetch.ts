import { systemClock, systemTimer, type Clock } from "../platform/clock-ids-and-timers.ts";
import { isBun } from "../platform/runtime-environment-and-env-files.ts";
import { VERSION } from "../platform/version.ts";

/**
 * Maximum number of bytes kept of a network's answer, decompressed, unless the caller expects more. Most answers are
 * under 1 KB.
 */
export const ANSWER_BYTES_MAX = 64 * 1024;

/**
 * Maximum number of bytes of an answer that a caller may expect: a few such answers at once still fit into a small
 * machine's memory.
 */
export const EXPECTED_BYTES_MAX = 16 * 1024 * 1024;

/** Headers of a JSON body. One object is shared by most calls, so comparing identity is enough to recognise it. */
export const JSON_BODY: Readonly<Record<string, string>> = { "content-type": "application/json" };

export const USER_AGENT = `reachlog/${VERSION}`;

const JSON_BODY_HEADERS = named(new Headers(JSON_BODY));

export interface SafeRequest {
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>> | Headers | undefined;
  readonly body?: string | undefined;
  /** Time-out of the whole call in ms: connecting, headers and body together. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /**
   * Maximum number of bytes kept of the answer, up to {@link EXPECTED_BYTES_MAX}. Default: {@link ANSWER_BYTES_MAX}.
   */
  readonly answerBytesMax?: number | undefined;
}

export interface NetworkAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /**
   * True if the answer's body broke off, came too late or was too large. In that case `text` is the beginning of the
   * body, and the status is valid.
   */
  readonly truncated: boolean;
}

/** Function that makes one HTTP call to a network. Throws only {@link NetworkFault}. */
export type SafeFetch = (url: string, request: SafeRequest) => Promise<NetworkAnswer>;

export interface ObjectRequest extends Omit<SafeRequest, "body" | "answerBytesMax"> {
  readonly body?: Uint8Array | undefined;
  /** Maximum number of bytes kept of the answer. */
  readonly answerBytesMax: number;
}

export interface ObjectAnswer extends Omit<NetworkAnswer, "text"> {
  readonly bytes: Uint8Array;
}

/** Function that makes one HTTP call for a file of an object store. Throws only {@link NetworkFault}. */
export type ObjectFetch = (url: string, request: ObjectRequest) => Promise<ObjectAnswer>;

export interface LinesRequest {
  readonly headers: SafeRequest["headers"];
  /** Maximum time until the answer's head, and between two pieces of it after that, in ms. */
  readonly answerMs: number;
  readonly silenceMs: number;
  /** Maximum number of characters of a line. A longer line ends the answer. */
  readonly lineCharactersMax: number;
  readonly signal: AbortSignal;
}

/** Function that requests an answer without an end, line by line. `lines` is absent unless the status is 200. */
export type LineFetch = (
  url: string,
  request: LinesRequest,
) => Promise<NetworkAnswer & { readonly lines?: AsyncIterable<string> }>;

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface SafeFetchOptions {
  /** Origins that may be called, as the configuration names them; of a URL, only its origin counts. */
  readonly allowedOrigins: readonly string[];
  readonly fetch?: Fetch;
  /** Clock that dates an answer which comes without a date. Default: the system's clock. */
  readonly clock?: Clock;
}

/**
 * Creates the only way out of the service. It calls configured origins only, follows no redirect, and bounds time and
 * memory of each call. An origin may be this machine, because the operator may want that.
 */
export function createSafeFetch(options: SafeFetchOptions): SafeFetch {
  const call = createCall(options, METHODS);
  return async (url, request) => {
    const { response, headers } = await call(url, request);
    const { status } = response;
    const bytesMax = Math.min(EXPECTED_BYTES_MAX, request.answerBytesMax ?? ANSWER_BYTES_MAX);
    if (!isWithin(headers, bytesMax)) return { status, headers, ...(await readText(response, bytesMax)) };
    try {
      return { status, headers, text: await response.text(), truncated: false };
    } catch {
      return { status, headers, text: "", truncated: true };
    }
  };
}

/**
 * Creates a function like that of {@link createSafeFetch}, for files of an object store: bytes in both directions, PUT
 * and DELETE too. The runtime may send these twice, so a repeat must do no harm.
 */
export function createObjectFetch(options: SafeFetchOptions): ObjectFetch {
  const call = createCall(options, OBJECT_METHODS);
  return async (url, request) => {
    const { response, headers } = await call(url, request);
    return { status: response.status, headers, ...(await readBytes(response, request.answerBytesMax)) };
  };
}

/** Maximum time in ms for which an endless answer is read, before the caller has to request it again. */
const LINES_MS_MAX = 24 * 3_600_000;

/** Creates a function like that of {@link createSafeFetch}, for an answer that never ends. Its faults are NetworkFaults. */
export function createLineFetch(options: SafeFetchOptions): LineFetch {
  const call = createCall(options, METHODS);
  return async (url, { headers: asked, answerMs, silenceMs, lineCharactersMax, signal }) => {
    const silent = new AbortController();
    const end = (): void => silent.abort(new DOMException("", "TimeoutError"));
    let stop = systemTimer(end, answerMs);
    const either = AbortSignal.any([signal, silent.signal]);
    const request = { method: "GET", headers: asked, timeoutMs: LINES_MS_MAX, signal: either };
    try {
      const { response, headers } = await call(url, request);
      const { status } = response;
      const answer = { status, headers, text: "", truncated: false };
      const heard = (): void => {
        stop();
        stop = systemTimer(end, silenceMs);
      };
      heard();
      if (status === 200) return { ...answer, lines: readLines(response, lineCharactersMax, heard, () => stop()) };
      const refused = await readText(response, ANSWER_BYTES_MAX);
      stop();
      return { ...answer, ...refused };
    } catch (fault) {
      stop();
      throw silent.signal.aborted ? new NetworkFault("timeout", false) : fault;
    }
  };
}

/** Yields the lines of an answer as they come. `heard` is called for each piece, `ended` at the end. */
async function* readLines({ body }: Response, charactersMax: number, heard: () => void, ended: () => void) {
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for await (const piece of body ?? []) {
      heard();
      const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      if ([...lines, rest].some(({ length }) => length > charactersMax)) throw new NetworkFault("invalid", false);
      yield* lines;
    }
  } catch (thrown) {
    throw thrown instanceof NetworkFault ? thrown : toNetworkFault(thrown);
  } finally {
    ended();
  }
}

function createCall(options: SafeFetchOptions, methods: ReadonlySet<string>) {
  const isAllowed = allowOnly(options.allowedOrigins);
  const { fetch: send = isBun ? fetch : sendUnpooled, clock = systemClock } = options;
  return async (url: string, request: SafeRequest | ObjectRequest) => {
    const init = prepare(url, request, (target) => methods.has(request.method) && isAllowed(target));
    try {
      const response = await send(url, init);
      return { response, headers: dated(response.headers, clock) };
    } catch (thrown) {
      throw request.signal?.aborted === true ? new NetworkFault("aborted", false) : toNetworkFault(thrown);
    }
  };
}

/**
 * Sends a request on a new connection. Its module is loaded on first use, because Bun does without it, and starts a
 * third faster that way.
 */
const sendUnpooled: Fetch = async (url, init) => (await import("./unpooled-fetch.ts")).unpooledFetch(url, init);

/**
 * Adds the time of arrival to the headers of an answer without a date (RFC 9110, section 6.6.1): other times in the
 * answer count from there.
 */
function dated(headers: Headers, clock: Clock): Headers {
  if (headers.has("date")) return headers;
  const all = new Headers(headers);
  all.set("date", new Date(clock()).toUTCString());
  return all;
}

/**
 * Starts the runtime's HTTP client early, by a call to port 0, where no server listens. If no file descriptor is left
 * when it starts, Bun 1.4.5 ends the process, and a client with enough connections to the service could cause that.
 */
export async function startClient(): Promise<void> {
  if (isBun) await fetch("http://127.0.0.1:0/").catch(() => undefined);
}

/**
 * HTTP methods that a network call may use. PUT and DELETE are left out: the runtime silently sends them a second time
 * when a kept-alive connection dies under them.
 */
const METHODS: ReadonlySet<string> = new Set(["GET", "POST"]);
const OBJECT_METHODS: ReadonlySet<string> = new Set(["GET", "PUT", "DELETE"]);

/** Creates the options of a call. Throws for everything that can be wrong before a byte is sent. */
function prepare(url: string, request: SafeRequest | ObjectRequest, isAllowed: (url: string) => boolean): RequestInit {
  if (request.signal?.aborted === true) throw new NetworkFault("aborted", true);
  if (!(request.timeoutMs > 0)) throw new NetworkFault("timeout", true);
  if (!isAllowed(url)) throw new NetworkFault("forbidden", true);
  const deadline = AbortSignal.timeout(request.timeoutMs);
  return {
    method: request.method,
    headers: checkedHeaders(request.headers),
    ...(request.body === undefined ? {} : { body: request.body as BodyInit }),
    redirect: "error",
    signal: request.signal === undefined ? deadline : AbortSignal.any([deadline, request.signal]),
  };
}

/** Maximum number of URLs that are cached as allowed. Most calls go to the same few URLs. */
const REMEMBERED_URLS_MAX = 32;

function allowOnly(urls: readonly string[]): (url: string) => boolean {
  const origins = new Set(urls.map((url) => new URL(url).origin));
  const remembered = new Set<string>();
  return (url) => {
    if (remembered.has(url)) return true;
    const parsed = URL.parse(url);
    if (parsed === null || !/^https?:$/.test(parsed.protocol) || !origins.has(parsed.origin)) return false;
    if (remembered.size >= REMEMBERED_URLS_MAX) remembered.clear();
    remembered.add(url);
    return true;
  };
}

function checkedHeaders(headers: SafeRequest["headers"]): Headers {
  if (headers === JSON_BODY) return JSON_BODY_HEADERS;
  try {
    return named(new Headers(headers));
  } catch {
    // A header is invalid, such as a token with a line break. The runtime's error is dropped, because it may repeat the
    // token.
    throw new NetworkFault("forbidden", true);
  }
}

function named(headers: Headers): Headers {
  if (!headers.has("user-agent")) headers.set("user-agent", USER_AGENT);
  return headers;
}

/**
 * Headers of an answer whose body has another length than `content-length` says: it is compressed, or sent in chunks.
 */
const LENGTH_CHANGING = ["content-encoding", "transfer-encoding"];

/** True if the answer's body is known to have at most this many bytes before it is read. */
function isWithin(headers: Headers, bytesMax: number): boolean {
  const length = headers.get("content-length");
  if (length === null || LENGTH_CHANGING.some((name) => headers.has(name))) return false;
  return Number(length) <= bytesMax;
}

async function readText(response: Response, bytesMax: number): Promise<{ text: string; truncated: boolean }> {
  const { bytes, truncated } = await readBytes(response, bytesMax);
  // With `stream`, the decoder leaves out a character of which the end is missing.
  return { text: new TextDecoder().decode(bytes, { stream: truncated }), truncated };
}

/**
 * Reads at most `bytesMax` bytes of an answer and hangs up if there are more. If the body breaks off, returns the bytes
 * before that.
 */
async function readBytes({ body }: Response, bytesMax: number): Promise<{ bytes: Uint8Array; truncated: boolean }> {
  const reader = body?.getReader();
  const chunks: Uint8Array[] = [];
  let left = bytesMax;
  try {
    while (left >= 0) {
      const { value } = (await reader?.read()) ?? {};
      if (value === undefined) return { bytes: Buffer.concat(chunks), truncated: false };
      chunks.push(value.subarray(0, left));
      left -= value.length;
    }
  } catch {
    // The body broke off, so nothing more arrives.
  } finally {
    // Also ends the download. This rejects if the body has failed before, and then there is nothing left to report.
    await reader?.cancel().catch(() => undefined);
  }
  return { bytes: Buffer.concat(chunks), truncated: true };
}

const MESSAGES = {
  /** Message of a call that was refused here, before connecting. */
  forbidden: "the call was not made: its address or headers are not allowed",
  refused: "the connection was refused",
  unreachable: "the host is unreachable",
  exhausted: "this machine cannot open another connection",
  dns: "the host name could not be resolved",
  certificate: "the host's certificate is not trusted",
  tls: "the secure connection failed",
  reset: "the connection broke before an answer",
  timeout: "no answer in time",
  aborted: "the call was given up",
  redirect: "the network answered with a redirect, which is not followed",
  /** Message of an invalid answer, and of any fault that is not foreseen. */
  invalid: "the answer is not valid HTTP",
} as const;

/** Kinds of fault that leave a call without an HTTP answer. */
export type NetworkFaultKind = keyof typeof MESSAGES;

/**
 * Thrown for a call without an answer. The runtime's error is not kept, not even as the cause, because Bun puts the URL
 * into it, and the URLs of Slack and Telegram are credentials.
 */
export class NetworkFault extends Error {
  override readonly name = "NetworkFault";
  readonly kind: NetworkFaultKind;
  /** True if no byte of the request was sent, so that a repeat cannot double anything; false if that is unknown. */
  readonly certainlyNotSent: boolean;
  constructor(kind: NetworkFaultKind, certainlyNotSent: boolean) {
    super(MESSAGES[kind]);
    this.kind = kind;
    this.certainlyNotSent = certainlyNotSent;
  }
}

/**
 * Kinds of fault by the error codes of fetch in Bun 1.4.5 and of `node:https` in Deno 2.9.6, as tried against real
 * servers. Other codes count as `invalid`.
 */
const KIND_BY_CODE: Readonly<Record<string, NetworkFaultKind>> = {
  ECONNREFUSED: "refused",
  ENETUNREACH: "unreachable",
  EHOSTUNREACH: "unreachable",
  EMFILE: "exhausted",
  ENFILE: "exhausted",
  ENOTFOUND: "dns",
  EAI_AGAIN: "dns",
  ECONNRESET: "reset",
  EPIPE: "reset",
  ETIMEDOUT: "timeout",
  UnexpectedRedirect: "redirect",
  EPROTO: "tls",
  // Deno's code if its permissions do not allow the host, which is then not even looked up.
  EPERM: "forbidden",
};

/**
 * Matches OpenSSL's codes for a certificate that is not trusted (`DEPTH_ZERO_SELF_SIGNED_CERT`, `CERT_HAS_EXPIRED`,
 * `UNABLE_TO_GET_ISSUER_CERT`, `ERR_TLS_…`).
 */
const CERTIFICATE_CODE = /CERT|^UNABLE_TO/;

/**
 * Matches codes for failures of the TLS protocol itself, and alerts of the server. In TLS 1.3 some of them come after
 * the request was sent.
 */
const TLS_CODE = /^ERR_SSL_/;

/**
 * Error codes of faults that come before the first byte of the request, as tried against real servers. `EPROTO` is not
 * one: it also comes for a connection that breaks after the request.
 */
const BEFORE_THE_REQUEST: ReadonlySet<NetworkFaultKind> = new Set([
  "forbidden",
  "refused",
  "unreachable",
  "exhausted",
  "dns",
  "certificate",
]);

export function toNetworkFault(thrown: unknown): NetworkFault {
  const { name, code } = thrown as { name?: unknown; code?: unknown };
  if (name === "TimeoutError") return new NetworkFault("timeout", false);
  if (name === "AbortError") return new NetworkFault("aborted", false);
  const kind = typeof code === "string" ? classifyCode(code) : "invalid";
  return new NetworkFault(kind, BEFORE_THE_REQUEST.has(kind));
}

function classifyCode(code: string): NetworkFaultKind {
  if (TLS_CODE.test(code)) return "tls";
  return KIND_BY_CODE[code] ?? (CERTIFICATE_CODE.test(code) ? "certificate" : "invalid");
}
