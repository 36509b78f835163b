import type { Recorded } from "../../events/catalog.ts";
import { consolePage, signInPage } from "../console/page.ts";
import type { EventLog } from "../log/event-log.ts";
import type { Projector } from "../projector/projector.ts";
import type { RateLimit } from "./rate-limit.ts";
import { redirect, type Answer } from "./answer.ts";
import { problems } from "./problem.ts";
import type { Sessions } from "./session.ts";

export interface ConsoleDeps {
  readonly eventLog: EventLog;
  readonly projector: Projector;
  readonly sessions: Sessions;
  readonly limits: { readonly limit: number; readonly used: () => number };
  readonly failureLimit: RateLimit;
}

const EVENTS_SHOWN = 50;

/** The operator's page and its sign-in. */
export function createConsole(deps: ConsoleDeps) {
  const { projector, sessions } = deps;
  return {
    async page(request: Request): Promise<Answer> {
      if (!sessions.admits(request)) return html(401, signInPage(false));
      const events: Recorded[] = [];
      for await (const event of deps.eventLog.store.read({ backwards: true, limit: EVENTS_SHOWN })) events.push(event);
      const run = projector.state("run");
      const view = {
        stats: projector.state("stats"),
        account: projector.state("account"),
        run: run.current,
        quota: { limit: deps.limits.limit, used: deps.limits.used() },
        inDoubt: [...run.open.values()].filter((attempt) => attempt.in_doubt).length,
        clicks: projector.state("clicks"),
        suspected: projector.state("suspected"),
        deliveries: projector.state("deliveries"),
        position: projector.position,
        events,
      };
      return html(200, consolePage(view));
    },

    signIn(token: string, address: string): Answer {
      const cookie = sessions.signIn(token);
      if (cookie !== undefined) return redirect(303, "/", { "set-cookie": cookie });
      const wait = deps.failureLimit.check(address);
      if (wait !== undefined) throw problems.tooMany(wait);
      deps.failureLimit.take(address);
      return html(401, signInPage(true));
    },
  };
}

function html(status: number, body: string): Answer {
  return {
    status,
    headers: {
      ...(status === 401 ? { "www-authenticate": 'Bearer realm="reachlog"' } : {}),
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy":
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      // Without a referrer at all, browsers would withhold the origin of the sign-in form from us too.
      "referrer-policy": "same-origin",
    },
    body,
  };
}
