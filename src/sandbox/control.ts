import { parseFault } from "./faults.ts";
import { overviewPage } from "./page.ts";
import type { Sandbox } from "./sandbox.ts";
import type { Person } from "./x/people.ts";
import { deliver } from "./x/messages.ts";

/**
 * What tests and the page use: what arrived, faults, limits, people, the clock. Outside of the networks' paths, so
 * that no request meant for a network ends here.
 */
export async function control(sandbox: Sandbox, request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const route = `${request.method} ${pathname}`;
  if (route === "GET /") return html(overviewPage(sandbox));
  if (route === "POST /_sandbox/page-faults") return switchFault(sandbox, await request.formData());
  if (route === "GET /_sandbox/arrived") return Response.json(arrived(sandbox));
  const body: unknown = request.method === "POST" ? await request.json().catch(() => ({})) : {};
  switch (route) {
    case "POST /_sandbox/faults":
      return addFault(sandbox, body);
    case "DELETE /_sandbox/faults":
      sandbox.faults.clear();
      return done();
    case "POST /_sandbox/limits":
      return setLimits(sandbox, body as Limits);
    case "POST /_sandbox/people":
      for (const person of body as Person[]) sandbox.x.people.set(person.id, person);
      return done();
    case "POST /_sandbox/inbound":
      return receive(sandbox, body as Record<string, string>);
    case "POST /_sandbox/clock":
      return moveClock(sandbox, body as { advanceMs?: number; speed?: number });
    default:
      return new Response("Not Found", { status: 404 });
  }
}

function addFault(sandbox: Sandbox, body: unknown): Response {
  const fault = parseFault(body);
  if (fault === undefined) return new Response("that is no fault", { status: 400 });
  sandbox.faults.add(fault);
  return done();
}

interface Limits {
  readonly x?: Partial<Sandbox["x"]["limits"]>;
  readonly slack?: number;
  readonly telegram?: number;
}

function setLimits({ x, slack, telegram }: Sandbox, limits: Limits): Response {
  Object.assign(x.limits, limits.x ?? {});
  if (limits.slack !== undefined) slack.limit = limits.slack;
  if (limits.telegram !== undefined) telegram.limit = limits.telegram;
  return done();
}

/** Somebody writes to us on X. */
function receive({ x }: Sandbox, { from = "", to = "", text = "" }: Record<string, string>): Response {
  return Response.json({ id: deliver(x, from, to, text).id });
}

function moveClock({ clock }: Sandbox, { advanceMs, speed }: { advanceMs?: number; speed?: number }): Response {
  if (speed !== undefined) clock.setSpeed(speed);
  if (advanceMs !== undefined) clock.advance(advanceMs);
  return Response.json({ now: clock.now() });
}

function arrived({ x, meta, slack, telegram }: Sandbox) {
  return {
    x: {
      messages: x.messages,
      accepted: [...x.accepted.values()].reduce((sum, count) => sum + count, 0),
      recipients: x.accepted.size,
      most_per_recipient: Math.max(0, ...x.accepted.values()),
      refreshes_per_token_most: Math.max(0, ...x.refreshUses.values()),
    },
    meta: { requests: meta.requests.total, unique: meta.events.total, events: meta.events.kept },
    slack: { total: slack.messages.total, messages: slack.messages.kept },
    telegram: { total: telegram.messages.total, messages: telegram.messages.kept },
  };
}

function switchFault(sandbox: Sandbox, form: FormData): Response {
  const chosen = form.get("fault");
  const [network, kind] = typeof chosen === "string" ? chosen.split(" ") : [];
  const fault = parseFault({ network, kind });
  if (fault === undefined) sandbox.faults.clear();
  else sandbox.faults.add(fault);
  return new Response(null, { status: 303, headers: { location: "/" } });
}

function done(): Response {
  return Response.json({ ok: true });
}

function html(page: string): Response {
  return new Response(page, { headers: { "content-type": "text/html; charset=utf-8" } });
}
