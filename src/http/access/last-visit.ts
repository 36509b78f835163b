import type { LastVisit } from "../../console/page-context.ts";
import type { Clock } from "../../platform/clock.ts";
import { createEncryptedCookie, type CookieSite } from "./encrypted-cookie.ts";

const COOKIE = {
  name: "reachlog_visit",
  keyName: "console-visit",
  lifetimeSeconds: 30 * 86_400,
};

/** A browser that asked for no page for so long was away; an open page asks whenever the log grows. */
export const VISIT_PAUSE_MS = 30 * 60_000;

interface Visit extends LastVisit {
  readonly before?: LastVisit | undefined;
}

export type Visits = ReturnType<typeof createVisits>;

/** How far the log was when a browser last looked at the console, kept by the browser. */
export function createVisits(masterKey: Uint8Array, site: CookieSite, clock: Clock) {
  const cookie = createEncryptedCookie<Visit>(COOKIE, masterKey, site, clock);
  /** Takes note that the browser is here now, and answers when it was before. `position`: of the log. */
  return (request: Pick<Request, "headers">, position: number) => {
    const at = clock();
    const known = cookie.read(request);
    const wasAway = known !== undefined && at - known.at > VISIT_PAUSE_MS;
    const before = wasAway ? { position: known.position, at: known.at } : known?.before;
    return { before, setCookie: cookie.give({ before, position, at }) };
  };
}
