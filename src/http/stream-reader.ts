import { networkOf } from "../platform/address.ts";
import { bearerToken, type Authentication } from "./authentication.ts";
import type { Asked } from "./endpoint.ts";
import { wantReader, type Sessions } from "./session.ts";

/** Who reads a stream, which may outlast their token and their session. */
export interface StreamReader {
  /** By which their streams are counted: one name for a token and for the sessions opened with it. */
  readonly name: string;
  /** Whether they may read still. */
  isKnown(): boolean;
}

export interface StreamReaderDeps {
  readonly authentication: Authentication;
  readonly sessions: Sessions;
}

/** Throws 401 for whoever may not read. */
export function streamReaderOf(
  { authentication, sessions }: StreamReaderDeps,
  { request, metadata, addressOf }: Asked<never>,
): StreamReader {
  wantReader(sessions, request, metadata);
  const authorization = request.headers.get("authorization");
  if (authorization === null) {
    // The request is not there any more when they are asked for again.
    const kept = { headers: new Headers({ cookie: request.headers.get("cookie") ?? "" }) };
    const caller = sessions.callerOf(kept);
    const name = caller === undefined ? `address ${networkOf(addressOf())}` : `caller ${caller}`;
    return { name, isKnown: () => sessions.admits(kept) };
  }
  const token = authentication.identify(bearerToken(authorization) ?? "");
  return { name: `caller ${metadata.caller}`, isKnown: () => token !== undefined && authentication.knows(token) };
}
