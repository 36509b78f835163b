import type { LastVisit } from "../../console/page-context.ts";
import type { Clock } from "../../platform/clock.ts";
import { createEncryptedCookie, type CookieSite } from "./encrypted-cookie.ts";

const COOKIE = {
  name: "reachlog_visit",
  keyName: "console-visit",
  lifetimeSeconds: 30 * 86_400,
};

/** A browser that requested no page for this long was away. An open page reloads whenever the log grows. */
export const VISIT_PAUSE_MS = 30 * 60_000;

interface Visit extends LastVisit {
  readonly before?: LastVisit | undefined;
}

export type Visits = ReturnType<typeof createVisits>;

/** Remembers in the browser how long the log was when it last looked at the console. */
export function createVisits(masterKey: Uint8Array, site: CookieSite, clock: Clock) {
  const cookie = createEncryptedCookie<Visit>(COOKIE, masterKey, site, clock);
  /** Notes that the browser is here now, and returns its visit before this one. `position` is the log's. */
  return (request: Pick<Request, "headers">, position: number) => {
    const at = clock();
    const known = cookie.read(request);
    const wasAway = known !== undefined && at - known.at > VISIT_PAUSE_MS;
    const before = wasAway ? { position: known.position, at: known.at } : known?.before;
    return { before, setCookie: cookie.give({ before, position, at }) };
  };
}
