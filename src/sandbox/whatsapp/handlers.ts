import { http, HttpResponse } from "msw";
import { graphError } from "../meta/answers.ts";
import { versionFault } from "../meta/version.ts";
import { cloudError, rateLimited, tokenRefused, windowClosed } from "./answers.ts";
import { renderWhatsapp } from "./markup.ts";
import { takeTurn, type WhatsappState } from "./state.ts";

/** Where the handlers are. */
const ORIGIN = "https://graph.facebook.com";

/** https://developers.facebook.com/documentation/business-messaging/whatsapp/messages/text-messages: characters, of which UTF-16 units are never fewer */
const BODY_UNITS_MAX = 4_096;

/** Text is taken for so long after the person wrote. */
const WINDOW_MS = 24 * 3_600_000;

/** One business number, and the one person whom it can reach. */
export function whatsappHandlers(state: WhatsappState) {
  const number = `${ORIGIN}/:version/:number`;
  return [
    http.post(`${number}/messages`, async ({ request }) => {
      return refuse(state, request) ?? send(state, await request.json().catch(() => undefined));
    }),
    http.get(number, ({ request }) => refuse(state, request) ?? HttpResponse.json({ id: state.phoneNumberId })),
  ];
}

/** The version, the token and the number, in this order. */
function refuse(state: WhatsappState, { headers, method, url }: Request): Response | undefined {
  const { pathname } = new URL(url);
  const [, version = "", number = ""] = pathname.split("/");
  const dead = versionFault(version, pathname);
  if (dead !== undefined) return dead;
  if (/^Bearer (.+)$/i.exec(headers.get("authorization") ?? "")?.[1] !== state.accessToken) return tokenRefused();
  if (number === state.phoneNumberId) return undefined;
  const message = `Unsupported ${method.toLowerCase()} request. Object with ID '${number}' does not exist`;
  return graphError(400, 100, message, { type: "GraphMethodException", error_subcode: 33 });
}

function send(state: WhatsappState, request: unknown): Response {
  const { messaging_product, to, type = "text", text } = (request ?? {}) as Partial<Record<string, unknown>>;
  const { body } = (text ?? {}) as { body?: unknown };
  if (messaging_product !== "whatsapp") return cloudError(400, 100, "messaging_product wants to be whatsapp");
  if (typeof to !== "string" || to === "") return cloudError(400, 100, "to is missing");
  if (type !== "text") return cloudError(400, 100, "only texts are known here");
  if (typeof body !== "string" || body === "") return cloudError(400, 100, "text.body is missing");
  if (body.length > BODY_UNITS_MAX) return cloudError(400, 100, `text.body has more than ${BODY_UNITS_MAX}`);
  const limit = takeTurn(state);
  if (limit !== undefined) return rateLimited(limit);
  const number = to.replace(/\D/g, "");
  if (number !== state.to) return cloudError(400, 131_026, "Message undeliverable.");
  const at = state.clock.now();
  if (at - state.wroteAt >= WINDOW_MS) return windowClosed();
  const { text: shown, marks } = renderWhatsapp(body);
  state.messages.add({ to: number, text: body, shown, marks, at });
  const id = `wamid.${btoa(`${number} ${state.messages.total}`)}`;
  return HttpResponse.json({
    messaging_product: "whatsapp",
    contacts: [{ input: to, wa_id: number }],
    messages: [{ id }],
  });
}
