const MESSAGES = {
  /** We refused before connecting. */
  forbidden: "the call was not made: its address or headers are not allowed",
  refused: "the connection was refused",
  unreachable: "there is no way to the host",
  exhausted: "this machine has no room for another connection",
  dns: "the host name could not be resolved",
  certificate: "the host's certificate is not trusted",
  tls: "the secure connection failed",
  reset: "the connection broke before an answer",
  timeout: "no answer in time",
  aborted: "the call was given up",
  redirect: "the network answered with a redirect, which is not followed",
  /** Or unforeseen. */
  invalid: "the answer was not understood as HTTP",
} as const;

/** What went wrong below HTTP. */
export type NetworkFaultKind = keyof typeof MESSAGES;

/**
 * A call without an answer. `certainlyNotSent`: no byte of the request left, so that a repeat cannot double anything;
 * false means "unknown". The message is ours and the runtime's error is not even kept as the cause, because Bun
 * puts the URL into it, and the URLs of Slack and Telegram are credentials.
 */
export class NetworkFault extends Error {
  override readonly name = "NetworkFault";
  readonly kind: NetworkFaultKind;
  readonly certainlyNotSent: boolean;
  constructor(kind: NetworkFaultKind, certainlyNotSent: boolean) {
    super(MESSAGES[kind]);
    this.kind = kind;
    this.certainlyNotSent = certainlyNotSent;
  }
}

/**
 * Error codes of fetch in Bun 1.4.5 and of `node:https` in Deno 2.9.6, as tried against real servers; what is missing
 * here counts as `invalid`.
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
  // A host that Deno's permissions do not name, which is not even looked up.
  EPERM: "forbidden",
};

/** OpenSSL's verdicts (`DEPTH_ZERO_SELF_SIGNED_CERT`, `CERT_HAS_EXPIRED`, `UNABLE_TO_GET_ISSUER_CERT`, `ERR_TLS_…`). */
const CERTIFICATE_CODE = /CERT|^UNABLE_TO/;

/** What the protocol itself fails of, and alerts of the other side: some of them (TLS 1.3) come after the request. */
const TLS_CODE = /^ERR_SSL_/;

/**
 * All that comes before the request. The certificate is judged before its first byte is written, as tried against real
 * servers; `EPROTO` comes for a handshake that fails as well as for a connection that is spoilt after the request.
 */
const BEFORE_THE_REQUEST: ReadonlySet<NetworkFaultKind> = new Set([
  "forbidden",
  "refused",
  "unreachable",
  "exhausted",
  "dns",
  "certificate",
]);

/** What fetch threw, as a fault. */
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
