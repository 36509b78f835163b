// These tests call the code directly.
import { expect, test } from "bun:test";
import { toNetworkFault, type NetworkFaultKind } from "../../src/networks/safe-fetch.ts";

const thrown = (code: unknown, name = "TypeError"): Error =>
  Object.assign(new Error("http://host/bot-token"), { code, name });

test.each<[unknown, NetworkFaultKind, boolean]>([
  ["ECONNREFUSED", "refused", true],
  ["ENOTFOUND", "dns", true],
  ["EAI_AGAIN", "dns", true],
  ["ECONNRESET", "reset", false],
  ["EPIPE", "reset", false],
  ["ETIMEDOUT", "timeout", false],
  ["EHOSTUNREACH", "unreachable", true],
  ["ENETUNREACH", "unreachable", true],
  ["EMFILE", "exhausted", true],
  ["UnexpectedRedirect", "redirect", false],
  ["EPROTO", "tls", false],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "certificate", true],
  ["CERT_HAS_EXPIRED", "certificate", true],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "certificate", true],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "certificate", true],
  ["Malformed_HTTP_Response", "invalid", false],
  ["HPE_INVALID_CONSTANT", "invalid", false],
  ["ERR_SSL_WRONG_VERSION_NUMBER", "tls", false],
  // In TLS 1.3, this alert may come after the request was sent: only then the server asks for a client certificate. So
  // the request may have arrived.
  ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", "tls", false],
  ["EPERM", "forbidden", true],
  [undefined, "invalid", false],
  [23, "invalid", false],
])("fetch's code %p is %s", (code, kind, certainlyNotSent) => {
  const fault = toNetworkFault(thrown(code));
  expect([fault.kind, fault.certainlyNotSent]).toEqual([kind, certainlyNotSent]);
  expect(fault.message).not.toContain("token");
});

test("DOMExceptions are distinguished by name", () => {
  expect(toNetworkFault(thrown(23, "TimeoutError")).kind).toBe("timeout");
  expect(toNetworkFault(thrown(20, "AbortError")).kind).toBe("aborted");
});
