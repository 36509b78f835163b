import type { Recorded } from "../../events/catalog.ts";
import { consolePage, signInPage } from "../console/page.ts";
import type { EventLog } from "../log/event-log.ts";
import type { Projector } from "../projector/projector.ts";
import { html } from "./answer.ts";
import type { DailyQuota } from "./daily-quota.ts";
import type { Operation } from "./endpoint.ts";
import type { Sessions } from "./session.ts";

export interface ConsoleDeps {
  readonly eventLog: EventLog;
  readonly projector: Projector;
  readonly sessions: Sessions;
  readonly quota: DailyQuota;
}

const EVENTS_SHOWN = 50;

export const showConsole: Operation<ConsoleDeps> = {
  id: "getConsole",
  tag: "service",
  summary: "The operator's console.",
  description: "Shows the run, the quota and the deliveries; wants a token as soon as one is configured.",
  answers: {
    200: { says: "The page.", isPage: true },
    401: { says: "The page that asks for a token.", isPage: true },
  },
  problems: [],
  async handle({ eventLog, projector, sessions, quota }, { request }) {
    if (!sessions.admits(request)) return html(401, signInPage(false));
    const events: Recorded[] = [];
    for await (const event of eventLog.store.read({ backwards: true, limit: EVENTS_SHOWN })) events.push(event);
    const run = projector.state("run");
    const view = {
      stats: projector.state("stats"),
      account: projector.state("account"),
      run: run.current,
      quota: { limit: quota.limit, used: quota.used() },
      inDoubt: [...run.open.values()].filter((attempt) => attempt.in_doubt).length,
      clicks: projector.state("clicks"),
      suspected: projector.state("suspected"),
      deliveries: projector.state("deliveries"),
      position: projector.position,
      events,
    };
    return html(200, consolePage(view));
  },
};
