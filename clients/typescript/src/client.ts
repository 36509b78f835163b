import createFetchClient, { type Client as FetchClient } from "openapi-fetch";
import type { operations, paths } from "./api.ts";

/** A client of one service: a method for each of HTTP, whose paths, bodies, answers and problems have types. */
export type Client = FetchClient<paths>;

export interface ClientOptions {
  /** Where the service is, such as `https://reach.example`. */
  readonly url: string;
  /** A token of the service; absent: the caller is anonymous. */
  readonly token?: string;
  /** In place of the global one, such as one with a deadline. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

/**
 * `data` of an answer is what the service says; `error` is the problem (RFC 9457) with which it refused, by whose `type`
 * one is told from the other. Rejects only where nothing came back.
 */
export function createClient({ url, token, fetch }: ClientOptions): Client {
  return createFetchClient<paths>({
    baseUrl: url.replace(/\/$/, ""),
    ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
    ...(fetch === undefined ? {} : { fetch }),
  });
}

/** What an operation is sent, and what it answers, by its id in the document. */
export type { operations, paths };
