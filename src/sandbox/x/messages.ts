import { http, HttpResponse } from "msw";
import { ORIGINS } from "../network.ts";
import { invalidRequest, xProblem } from "./answers.ts";
import { admit } from "./guard.ts";
import type { DirectMessage, XState } from "./state.ts";

const SEND = ["dm.write", "dm.read", "tweet.read", "users.read"];
const READ = ["dm.read", "tweet.read", "users.read"];

const TEXT_CHARS_MAX = 10_000;

/** X shows messages of the last 30 days. */
const SHOWN_MS = 30 * 24 * 3_600_000;

const EVENT_FIELDS = new Set([
  "attachments",
  "created_at",
  "dm_conversation_id",
  "entities",
  "event_type",
  "id",
  "referenced_posts",
  "text",
]);

/** Sending a direct message, and reading conversations. */
export function messageHandlers(state: XState) {
  const api = `${ORIGINS.x}/2`;
  return [
    http.post(`${api}/dm_conversations/with/:participant/messages`, ({ request, params }) =>
      send(state, request, String(params["participant"])),
    ),
    http.get(`${api}/dm_conversations/with/:participant/dm_events`, ({ request, params }) =>
      read(state, request, String(params["participant"])),
    ),
    http.get(`${api}/dm_events`, ({ request }) => read(state, request, undefined)),
  ];
}

async function send(state: XState, request: Request, participant: string): Promise<Response> {
  const { dmLimit, dmDayLimit } = state.limits;
  const admitted = admit(state, request, { endpoint: "send dm", scopes: SEND, limit: dmLimit, dayLimit: dmDayLimit });
  if ("refused" in admitted) return admitted.refused;
  const { grant, headers } = admitted;
  const text = textOf(await request.json().catch(() => undefined));
  if (!/^\d{1,19}$/.test(participant)) return invalidRequest("The `participant_id` is not valid");
  if (text === undefined) return invalidRequest("The body wants `text` of 1 to 10000 characters and nothing unknown");
  const recipient = state.people.get(participant);
  if (recipient === undefined || !recipient.receives_your_dm || recipient.closed_when_sent === true) {
    const closed = xProblem(403, "Forbidden", "You do not have permission to DM one or more participants.");
    for (const [name, value] of Object.entries(headers)) closed.headers.set(name, value);
    return closed;
  }
  const message = deliver(state, grant.userId, participant, text);
  state.accepted.set(participant, (state.accepted.get(participant) ?? 0) + 1);
  const data = { dm_conversation_id: conversationOf(message), dm_event_id: message.id };
  return HttpResponse.json({ data }, { status: 201, headers });
}

function textOf(body: unknown): string | undefined {
  if (typeof body !== "object" || body === null || Object.keys(body).some((key) => key !== "text")) return undefined;
  const { text } = body as { text?: unknown };
  return typeof text === "string" && text.trim() !== "" && text.length <= TEXT_CHARS_MAX ? text : undefined;
}

/** Puts a message into the conversation; X does not de-duplicate. */
export function deliver(state: XState, sender: string, recipient: string, text: string): DirectMessage {
  const now = state.clock.now();
  const message: DirectMessage = {
    id: String(1_800_000_000_000_000_000n + BigInt(state.messages.length)),
    sender_id: sender,
    recipient_id: recipient,
    text,
    created_at: now,
    visible_at: now + state.limits.lateCommitMs,
  };
  state.messages.push(message);
  return message;
}

function conversationOf({ sender_id, recipient_id }: DirectMessage): string {
  const [low, high] = BigInt(sender_id) < BigInt(recipient_id) ? [sender_id, recipient_id] : [recipient_id, sender_id];
  return `${low}-${high}`;
}

function read(state: XState, request: Request, participant: string | undefined): Response {
  const admitted = admit(state, request, { endpoint: "dm events", scopes: READ, limit: state.limits.dmReadLimit });
  if ("refused" in admitted) return admitted.refused;
  const parameters = new URL(request.url).searchParams;
  const size = Number(parameters.get("max_results") ?? 100);
  if (!Number.isInteger(size) || size < 1 || size > 100)
    return invalidRequest("`max_results` is not between 1 and 100");
  const fields = parameters.get("dm_event.fields")?.split(",") ?? ["id", "event_type", "text"];
  const unknown = fields.find((field) => !EVENT_FIELDS.has(field));
  if (unknown !== undefined) return invalidRequest(`The \`dm_event.fields\` value [${unknown}] is not known`);

  const own = admitted.grant.userId;
  const now = state.clock.now();
  const found = state.messages
    .filter((dm) => dm.visible_at <= now && now - dm.created_at < SHOWN_MS && involves(dm, own, participant))
    .toReversed();
  const token = parameters.get("pagination_token");
  const start = token === null ? 0 : Number(Buffer.from(token, "base64url").toString());
  const expand = parameters.get("expansions")?.split(",").includes("sender_id") ?? false;
  const data = found.slice(start, start + size).map((dm) => shown(dm, fields, expand));
  const next =
    start + size < found.length ? { next_token: Buffer.from(String(start + size)).toString("base64url") } : {};
  return HttpResponse.json({ data, meta: { result_count: data.length, ...next } }, admitted);
}

function involves({ sender_id, recipient_id }: DirectMessage, own: string, participant: string | undefined): boolean {
  if (sender_id !== own && recipient_id !== own) return false;
  return participant === undefined || sender_id === participant || recipient_id === participant;
}

function shown(dm: DirectMessage, fields: readonly string[], expandSender: boolean): Record<string, unknown> {
  const { text, urls } = wrapLinks(dm);
  const all: Record<string, unknown> = {
    id: dm.id,
    event_type: "MessageCreate",
    text,
    created_at: new Date(dm.created_at).toISOString(),
    dm_conversation_id: conversationOf(dm),
    ...(urls.length > 0 ? { entities: { urls } } : {}),
  };
  const asked = fields.flatMap((field) => (field in all ? [[field, all[field]] as const] : []));
  return { ...Object.fromEntries(asked), ...(expandSender ? { sender_id: dm.sender_id } : {}) };
}

/** X replaces each link by one of its own; the original is in the entities. */
function wrapLinks({ id, text }: DirectMessage) {
  const urls: { start: number; end: number; url: string; expanded_url: string; display_url: string }[] = [];
  let shift = 0;
  const wrapped = text.replace(/https?:\/\/\S+/g, (link: string, at: number) => {
    const url = `https://t.co/${(BigInt(id) + BigInt(urls.length)).toString(36).slice(-10)}`;
    const start = at + shift;
    shift += url.length - link.length;
    const display_url = link.replace(/^https?:\/\//, "").slice(0, 26);
    urls.push({ start, end: start + url.length, url, expanded_url: link, display_url });
    return url;
  });
  return { text: wrapped, urls };
}
