import { http, HttpResponse } from "msw";
import { ORIGINS } from "../network.ts";
import { graphError } from "./answers.ts";
import { faultOf, type MetaEvent } from "./event.ts";
import { countEvent, type MetaState } from "./state.ts";
import { versionFault } from "./version.ts";

const BATCH_MAX = 1_000;

/** Conversions API: events in, and the pixel looked up (which is how a token can be tried without an event). */
export function metaHandlers(state: MetaState) {
  const pixel = `${ORIGINS.meta}/:version/:pixel`;
  return [
    http.post(`${pixel}/events`, async ({ request }) => {
      const body = (await request.json().catch(() => undefined)) as Record<string, unknown> | undefined;
      state.requests.add(body);
      return refuse(state, request, body?.["access_token"]) ?? accept(state, body);
    }),
    http.get(pixel, ({ request }) => refuse(state, request, undefined) ?? HttpResponse.json({ id: state.pixelId })),
  ];
}

/** The version, the token and the pixel, in this order. */
function refuse(state: MetaState, request: Request, tokenInBody: unknown) {
  const { pathname, searchParams } = new URL(request.url);
  const [, version = "", pixel = ""] = pathname.split("/");
  const dead = versionFault(version, pathname);
  if (dead !== undefined) return dead;
  const inHeader = /^Bearer (.+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
  const token = searchParams.get("access_token") ?? tokenInBody ?? inHeader;
  if (token !== state.accessToken)
    return graphError(400, 190, "Invalid OAuth access token - Cannot parse access token");
  if (pixel === state.pixelId) return undefined;
  const verb = request.method.toLowerCase();
  const message = `Unsupported ${verb} request. Object with ID '${pixel}' does not exist, cannot be loaded due to missing permissions, or does not support this operation.`;
  return graphError(400, 100, message, { type: "GraphMethodException", error_subcode: 33 });
}

function accept(state: MetaState, body: Record<string, unknown> | undefined) {
  const data = body?.["data"];
  if (!Array.isArray(data) || data.length < 1 || data.length > BATCH_MAX) {
    return invalid(`data wants 1 to ${BATCH_MAX} events`);
  }
  const nowS = state.clock.now() / 1000;
  // One bad event refuses the whole batch, and none is processed.
  for (const event of data as unknown[]) {
    const fault = faultOf(event, nowS);
    if (fault !== undefined) return invalid(fault);
  }
  const code = body?.["test_event_code"];
  for (const event of data as MetaEvent[]) {
    countEvent(state, typeof code === "string" ? { ...event, test_event_code: code } : event);
  }
  return HttpResponse.json({ events_received: data.length, messages: [], fbtrace_id: "ASandboxTrace" });
}

function invalid(reason: string) {
  return graphError(400, 100, "Invalid parameter", {
    error_subcode: 2_804_019,
    error_user_title: "Invalid parameter",
    error_user_msg: reason,
  });
}
