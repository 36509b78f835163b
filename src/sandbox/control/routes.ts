import type { ControlledWorld } from "../world.ts";
import { revokeAll } from "../x/tokens.ts";
import { addFault, clearFaults, migrate, Misuse, moveClock, post, putPeople, receive, setLimits } from "./actions.ts";
import { arrived } from "./arrived.ts";
import { overviewPage } from "./page.ts";

/** Does one thing and answers what came of it. Throws {@link Misuse}. */
type Action = (sandbox: ControlledWorld, body: unknown, query: URLSearchParams) => unknown;

const ACTIONS: Readonly<Record<string, Action>> = {
  "GET /_sandbox/arrived": (sandbox) => arrived(sandbox),
  "GET /_sandbox/faults": ({ faults }) => faults.list(),
  "POST /_sandbox/faults": addFault,
  "DELETE /_sandbox/faults": clearFaults,
  "POST /_sandbox/faults/clear": clearFaults,
  "POST /_sandbox/limits": setLimits,
  "POST /_sandbox/people": putPeople,
  "POST /_sandbox/inbound": receive,
  "POST /_sandbox/post": post,
  "POST /_sandbox/clock": moveClock,
  "POST /_sandbox/telegram/migrate": migrate,
  "POST /_sandbox/x/revoke": ({ x }) => revokeAll(x),
  "POST /_sandbox/reset": (sandbox) => sandbox.reset(),
};

/**
 * What tests and the page use: what arrived, faults, limits, people, the clock. Outside of the networks' paths, so
 * that no request meant for a network ends here.
 */
export async function control(sandbox: ControlledWorld, request: Request): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  const route = `${request.method} ${pathname}`;
  if (route === "GET /") return html(overviewPage(sandbox));
  const action = Object.hasOwn(ACTIONS, route) ? ACTIONS[route] : undefined;
  if (action === undefined) return new Response("Not Found", { status: 404 });
  try {
    const isForm = request.headers.get("content-type")?.startsWith("application/x-www-form-urlencoded") ?? false;
    const result = action(sandbox, await bodyOf(request, isForm), searchParams);
    // A form is one of the page's, which wants to be seen again.
    if (isForm) return new Response(null, { status: 303, headers: { location: "/" } });
    return Response.json(result ?? { ok: true });
  } catch (fault) {
    if (fault instanceof Misuse) return Response.json({ error: fault.message }, { status: 400 });
    throw fault;
  }
}

async function bodyOf(request: Request, isForm: boolean): Promise<unknown> {
  const text = await request.text();
  if (isForm) return Object.fromEntries(new URLSearchParams(text));
  if (text === "") return {};
  try {
    return JSON.parse(text);
  } catch {
    throw new Misuse("the body is no JSON");
  }
}

function html(page: string): Response {
  return new Response(page, { headers: { "content-type": "text/html; charset=utf-8" } });
}
