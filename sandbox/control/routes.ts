import { pageAnswer } from "../html.tsx";
import { NETWORKS } from "../network-origins-and-refusals.ts";
import { parseJson } from "../read-request.ts";
import type { ControlledWorld } from "../world.ts";
import { ACTIONS, Misuse } from "./api-actions.ts";
import { assetAnswer } from "./assets.ts";
import { pathOf, PAGES } from "./document.tsx";
import { networkPage } from "./network-page.tsx";
import { overviewPage } from "./overview.tsx";

/**
 * The control API and its pages, for tests and people: arrivals, faults, instances. Its paths are separate from the
 * networks', so that it never answers a request to a network.
 */
export async function control(sandbox: ControlledWorld, request: Request): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  const route = `${request.method} ${pathname}`;
  const action = Object.hasOwn(ACTIONS, route) ? ACTIONS[route] : undefined;
  if (action === undefined) {
    const shown = request.method === "GET" ? (assetAnswer(pathname) ?? page(sandbox, pathname)) : undefined;
    return shown ?? refusal(404, "There is nothing at this path.");
  }
  if (request.method !== "GET" && isOfForeignPage(request)) {
    return refusal(403, "Only pages of the sandbox itself, and programs, may do this.");
  }
  try {
    if (!isForm(request)) {
      const body = await jsonBody(request);
      return Response.json(action(sandbox, body, searchParams) ?? { ok: true });
    }
    const { page: from, ...fields } = Object.fromEntries(new URLSearchParams(await request.text()));
    action(sandbox, fields, searchParams);
    // Redirects the browser to the page with the form.
    const location = PAGES.find(({ path }) => path === from)?.path ?? "/";
    return new Response(null, { status: 303, headers: { location } });
  } catch (fault) {
    if (fault instanceof Misuse) return refusal(400, fault.message);
    throw fault;
  }
}

/** Returns the page of the sandbox at this path; undefined if there is none. */
function page(sandbox: ControlledWorld, pathname: string): Response | undefined {
  const network = NETWORKS.find((name) => pathname === pathOf(name));
  if (pathname !== "/" && network === undefined) return undefined;
  const shown = network === undefined ? overviewPage(sandbox) : networkPage(sandbox, network);
  return pageAnswer(shown, { formAction: "'self'" });
}

function refusal(status: 400 | 403 | 404, error: string): Response {
  return Response.json({ error }, { status });
}

/** True if a browser sends the request for another site's page. That page could otherwise kill the demo's instances. */
function isOfForeignPage({ headers }: Request): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site !== "same-origin" && site !== "none";
  const origin = headers.get("origin");
  return origin !== null && URL.parse(origin)?.host !== headers.get("host");
}

function isForm({ headers }: Request): boolean {
  return headers.get("content-type")?.startsWith("application/x-www-form-urlencoded") ?? false;
}

async function jsonBody(request: Request): Promise<unknown> {
  const text = await request.text();
  if (text === "") return {};
  const body = parseJson(text);
  if (body === undefined) throw new Misuse("the body is no JSON");
  return body;
}
