/**
 * The service preloads this file. Each request that the service sends then fails with an error that repeats the
 * request's address, headers and body. At SIGUSR2 the process throws another error, outside of any request.
 */
import { ClientRequest } from "node:http";

function repeating(url: string, headers: object, body: unknown): Error {
  const told = `${url} ${JSON.stringify(headers)} ${JSON.stringify(body)}`;
  const cause = new Error(`the request was ${told}`);
  return Object.assign(new TypeError(`cannot fetch ${told}`, { cause }), { url, told });
}

// Replaces the functions with which the service sends requests, on Bun and on other runtimes.
// oxlint-disable-next-line no-restricted-properties
globalThis.fetch = Object.assign(
  (url: string, { headers, body }: RequestInit = {}) => Promise.reject(repeating(url, [...new Headers(headers)], body)),
  { preconnect: () => {} },
) as typeof fetch;

ClientRequest.prototype.end = function end(this: ClientRequest, body?: unknown) {
  return this.destroy(repeating(`${this.host}${this.path}`, this.getHeaders(), body));
} as typeof ClientRequest.prototype.end;

process.on("SIGUSR2", () => {
  throw new Error("thrown on purpose");
});
