import { StoreUnavailable } from "eventstore-lite";
import { isLost, sqlState } from "eventstore-lite/postgres";
import { ServiceError } from "../platform/service-error.ts";

/** A server's refusals of our login: unknown user, no such database, no right to it. */
const NOT_SERVED = /^(?:28|3D|42501)/;

/**
 * Asks a database server for the first time, and says why it failed: later attempts find a server that was there.
 * `shown`: how messages call it, without its password. Throws a ServiceError (configuration, unavailable).
 */
export async function reachServer<Result>(shown: string, reach: () => Promise<Result>): Promise<Result> {
  try {
    return await reach();
  } catch (fault) {
    const cause = fault instanceof StoreUnavailable ? fault.cause : fault;
    const reason = cause instanceof Error ? cause.message : String(cause);
    if (NOT_SERVED.test(sqlState(cause) ?? "")) {
      throw new ServiceError("configuration", `${shown} does not serve us: ${reason}`, { cause });
    }
    if (!(fault instanceof StoreUnavailable) && !isLost(cause)) throw fault;
    throw new ServiceError("unavailable", `${shown} does not answer: ${reason}`, { cause });
  }
}
