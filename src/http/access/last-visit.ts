import type { LastVisit } from "../../console/page-context.ts";
import type { Clock } from "../../platform/clock-ids-and-timers.ts";
import { createEncryptedCookie, type CookieSite } from "./encrypted-cookie.ts";
import type { WithHeaders } from "../server/http-response.ts";

const COOKIE = {
  name: "reachlog_visit",
  keyName: "console-visit",
  lifetimeSeconds: 30 * 86_400,
};

/**
 * Time without a request for a page after which a visit counts as over. An open page keeps its visit going, because it
 * reloads whenever the log grows.
 */
export const VISIT_PAUSE_MS = 30 * 60_000;

interface Visit extends LastVisit {
  readonly before?: LastVisit | undefined;
}

export type Visits = ReturnType<typeof createVisits>;

/**
 * Remembers in a cookie where the log ended at the browser's last visit, so that the console can show what is new
 * since.
 */
export function createVisits(masterKey: Uint8Array, site: CookieSite, clock: Clock) {
  const cookie = createEncryptedCookie<Visit>(COOKIE, masterKey, site, clock);
  /**
   * Returns the browser's previous visit, and the cookie that records the present one. `position` is that of the log's
   * newest event.
   */
  return (request: WithHeaders, position: number) => {
    const at = clock();
    const known = cookie.read(request);
    const wasAway = known !== undefined && at - known.at > VISIT_PAUSE_MS;
    const before = wasAway ? { position: known.position, at: known.at } : known?.before;
    return { before, setCookie: cookie.give({ before, position, at }) };
  };
}
