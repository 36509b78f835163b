import createFetchClient, { type Client as FetchClient } from "openapi-fetch";
import type { operations, paths } from "./api.ts";

/** A client of one service, with a method per HTTP method. Paths, bodies, answers and problems are typed. */
export type Client = FetchClient<paths>;

export interface ClientOptions {
  /** The service's URL, such as `https://reach.example`. */
  readonly url: string;
  /** A token of the service. Undefined if the caller is anonymous. */
  readonly token?: string;
  /** Replaces the global `fetch`, for example to set a deadline. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

/**
 * Creates a client. In an answer, `data` is the result and `error` the problem (RFC 9457), distinguished by its `type`.
 * Rejects only if there is no answer.
 */
export function createClient({ url, token, fetch }: ClientOptions): Client {
  return createFetchClient<paths>({
    baseUrl: url.replace(/\/$/, ""),
    ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
    ...(fetch === undefined ? {} : { fetch }),
  });
}

/** Request and answer types of each operation, by its id in the document. */
export type { operations, paths };
