import { parseJson } from "../request.ts";
import type { ControlledWorld } from "../world.ts";
import { ACTIONS, Misuse } from "./actions.ts";
import { overviewPage } from "./page.ts";

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
  const body = parseJson(text);
  if (body === undefined) throw new Misuse("the body is no JSON");
  return body;
}

function html(page: string): Response {
  return new Response(page, { headers: { "content-type": "text/html; charset=utf-8" } });
}
