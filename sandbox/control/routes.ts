import type { VNode } from "preact";
import { pageAnswer } from "../html.tsx";
import { NETWORKS } from "../network.ts";
import { parseJson } from "../request.ts";
import type { ControlledWorld } from "../world.ts";
import { ACTIONS, Misuse } from "./actions.ts";
import { assetAnswer } from "./assets.ts";
import { pathOf, PAGES, errorPage } from "./document.tsx";
import { networkPage } from "./network-page.tsx";
import { overviewPage } from "./overview.tsx";
import { peoplePage } from "./people-page.tsx";

/**
 * The control API and its pages, for tests and people: arrivals, faults, limits, people, the clock. Its paths are
 * separate from the networks', so that it never answers a request to a network.
 */
export async function control(sandbox: ControlledWorld, request: Request): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  const route = `${request.method} ${pathname}`;
  const action = Object.hasOwn(ACTIONS, route) ? ACTIONS[route] : undefined;
  if (action === undefined) {
    const shown =
      request.method === "GET" ? (assetAnswer(pathname) ?? page(sandbox, pathname, searchParams)) : undefined;
    return shown ?? refusal(sandbox, request, 404, "There is nothing at this path.");
  }
  if (request.method !== "GET" && isOfForeignPage(request)) {
    return refusal(sandbox, request, 403, "Only pages of the sandbox itself, and programs, may do this.");
  }
  try {
    if (!isForm(request)) {
      const body = await jsonBody(request);
      return Response.json(action(sandbox, body, searchParams) ?? { ok: true });
    }
    const { page: from, ...fields } = await formFields(request);
    action(sandbox, fields, searchParams);
    // Returns to the form's page.
    const location = PAGES.find(({ path }) => path === from)?.path ?? "/";
    return new Response(null, { status: 303, headers: { location } });
  } catch (fault) {
    if (fault instanceof Misuse) return refusal(sandbox, request, 400, fault.message);
    throw fault;
  }
}

/** Undefined if there is no such page. */
function page(sandbox: ControlledWorld, pathname: string, query: URLSearchParams): Response | undefined {
  const shown = pageAt(sandbox, pathname, query);
  return shown && pageAnswer(shown, { formAction: "'self'" });
}

function pageAt(sandbox: ControlledWorld, pathname: string, query: URLSearchParams): VNode | undefined {
  if (pathname === "/") return overviewPage(sandbox);
  if (pathname === "/people") return peoplePage(sandbox, numberOf(query, "skip") ?? 0);
  const network = NETWORKS.find((name) => pathname === pathOf(name));
  if (network === undefined) return undefined;
  const conversation = query.get("conversation") ?? undefined;
  return networkPage(sandbox, network, { before: numberOf(query, "before"), conversation });
}

/** A non-negative integer; undefined for any other text. */
function numberOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name) ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** Refuses with a page for people, or JSON for programs. */
function refusal({ clock }: ControlledWorld, request: Request, status: 400 | 403 | 404, detail: string): Response {
  const wantsPage = request.headers.get("accept")?.includes("text/html") === true;
  if (!wantsPage) return Response.json({ error: detail }, { status });
  return pageAnswer(errorPage(clock.now(), status === 404 ? "Not found" : "Not done", detail), { status });
}

/** True if a browser sends the request for another site's page. Such a page could otherwise kill a demo's instances. */
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

/** Numeric fields. */
const NUMBERS: readonly string[] = ["count", "retryAfter"];

/** Converts a form to the equivalent JSON, without empty fields. */
async function formFields(request: Request): Promise<Readonly<Record<string, string | number>>> {
  const filled = [...new URLSearchParams(await request.text())].filter(([, value]) => value !== "");
  return Object.fromEntries(filled.map(([name, value]) => [name, NUMBERS.includes(name) ? Number(value) : value]));
}
