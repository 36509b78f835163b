import { randomInt, randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { http, HttpResponse } from "msw";
import { ORIGINS } from "../network-origins-and-refusals.ts";
import { bearerOf, isRecord, jsonOf, membersOf } from "../read-request.ts";
import { writeAnswer, writeHead } from "../convert-node-http-messages.ts";
import { forbiddenScope, invalidRequest, unauthorized, xProblem } from "./error-answers.ts";
import type { Connection, Damage, Subscription } from "./activity-state.ts";
import { bill, findById, type DirectMessage, type XState } from "./state.ts";

/** Types of event that the sandbox's X offers to an account, with the scope that a subscription requires. */
const PRIVATE_TYPES = ["dm.received", "dm.sent", "dm.read", "dm.indicate_typing", "chat.received", "chat.sent"];
const REVOKE = "oauth.revoke";

/** Types of event that X charges for, the price of which is that of a message. */
const BILLED = ["dm.received", "chat.received"];

const PATH = `${ORIGINS.x}/2/activity/subscriptions`;

/** Handles requests to create, list and delete subscriptions. */
export function activityHandlers(state: XState) {
  const { subscriptions } = state.activity;
  const meta = () => ({ total_subscriptions: subscriptions.size });
  return [
    http.post(PATH, async ({ request }) => subscribe(state, bearerOf(request), await jsonOf(request))),
    http.get(PATH, ({ request }) => {
      return refuseUser(state, request) ?? HttpResponse.json({ data: [...subscriptions.values()], meta: meta() });
    }),
    http.delete(`${PATH}/:id`, ({ request, params }) => {
      const refused = refuseUser(state, request);
      if (refused !== undefined) return refused;
      const deleted = subscriptions.delete(String(params["id"]));
      return HttpResponse.json({ data: { deleted }, meta: meta() });
    }),
  ];
}

/** Refuses a request whose token is not the app's own; returns undefined for the app's own token. */
function refuseUser(state: XState, request: Request): Response | undefined {
  const token = bearerOf(request);
  if (token === state.appBearer) return undefined;
  if (!state.access.has(token)) return unauthorized();
  const detail =
    "Authenticating with OAuth 2.0 User Context is forbidden for this endpoint. Supported authentication types are [OAuth 2.0 Application-Only].";
  const type = "https://api.twitter.com/2/problems/unsupported-authentication";
  return xProblem(403, "Unsupported Authentication", detail, type);
}

function subscribe(state: XState, token: string, body: unknown): Response {
  const { subscriptions } = state.activity;
  const { event_type, filter, tag, ...others } = membersOf(body);
  const known = [...PRIVATE_TYPES, ...(state.limits.offersRevoke ? [REVOKE] : [])];
  if (typeof event_type !== "string" || !known.includes(event_type) || !isRecord(filter)) {
    return invalidRequest(`The \`event_type\` field value [${String(event_type)}] is not one of the known values`);
  }
  if (Object.keys(others).some((name) => name !== "webhook_id")) return invalidRequest("unexpected field");
  if (typeof tag === "string" && (tag.length < 1 || tag.length > 200)) return invalidRequest("tag of 1 to 200");
  const refused = refuseSubscriber(state, token, event_type, filter);
  if (refused !== undefined) return refused;
  const same = [...subscriptions.values()].find(
    (one) => one.event_type === event_type && one.filter["user_id"] === filter["user_id"],
  );
  if (same !== undefined) return xProblem(409, "DuplicateSubscription", "The subscription exists already.");
  if (subscriptions.size >= state.limits.subscriptions) {
    return xProblem(403, "SubscriptionLimitExceeded", "The app has as many subscriptions as it may have.");
  }
  const created_at = new Date(state.clock.now()).toISOString();
  const subscription: Subscription = {
    subscription_id: String(1_900_000_000_000_000_000n + BigInt(randomInt(1_000_000_000))),
    event_type,
    filter: filter as Subscription["filter"],
    ...(typeof tag === "string" ? { tag } : {}),
    created_at,
    updated_at: created_at,
  };
  subscriptions.set(subscription.subscription_id, subscription);
  const meta = { total_subscriptions: subscriptions.size };
  return HttpResponse.json(
    {
      spec: { data: { subscription }, meta },
      list: { data: [subscription], meta },
      bare: { data: subscription },
    }[state.limits.createAnswer],
  );
}

/** Refuses a token that may not subscribe to a type of event of this account; undefined if it may. */
function refuseSubscriber(state: XState, token: string, type: string, filter: Readonly<Record<string, unknown>>) {
  if (type === REVOKE) {
    return token === state.appBearer || state.access.has(token) ? undefined : unauthorized();
  }
  if (token === state.appBearer) {
    const message = "OauthAccessTokenRequired: OAuth user access token is required for this event type";
    return HttpResponse.json({ errors: [{ message }] }, { status: 400 });
  }
  const grant = state.access.get(token);
  if (grant === undefined || state.revokedFamilies.has(grant.family)) return unauthorized();
  if (!grant.scopes.includes("dm.read") || filter["user_id"] !== grant.userId) return forbiddenScope();
  return undefined;
}

/** True if the path is that of X's activity stream, whose answer never ends. */
export function isStream(path: string): boolean {
  return path.split("?")[0] === "/x/2/activity/stream";
}

/**
 * Answers a request for X's activity stream. The head comes with the first signal or keep-alive, so an idle stream
 * answers late.
 */
export async function openStream(state: XState, request: Request, response: ServerResponse): Promise<void> {
  const now = state.clock.now();
  const refused = refuseUser(state, request) ?? refuseStream(state, new URL(request.url).searchParams);
  if (refused !== undefined) return writeAnswer(response, refused, now);
  const { connections, ghosts } = state.activity;
  const write = (text: string): void => {
    const head = new Response(null, { headers: { "content-type": "application/json" } });
    if (!response.headersSent) writeHead(response, head, state.clock.now());
    response.write(text);
  };
  const connection: Connection = {
    write,
    end(how) {
      connections.delete(connection);
      clearInterval(keepAlive);
      if (how === "end") response.end();
      else response.socket?.destroy();
    },
  };
  connections.add(connection);
  const keepAlive = setInterval(() => {
    flushLate(state);
    write("\r\n");
  }, state.limits.keepAliveMs);
  response.once("close", () => {
    clearInterval(keepAlive);
    connections.delete(connection);
    if (state.limits.ghostMs > 0) ghosts.push(Date.now() + state.limits.ghostMs);
  });
}

function refuseStream({ activity }: XState, query: URLSearchParams): Response | undefined {
  if (Number(query.get("backfill_minutes") ?? 0) > 0 || query.has("start_time") || query.has("end_time")) {
    return invalidRequest("Backfill was unauthorized: it needs Enterprise access");
  }
  const ghosts = activity.ghosts.filter((until) => until > Date.now()).length;
  if (activity.connections.size + ghosts < CONNECTIONS_MAX) return undefined;
  return xProblem(
    429,
    "ConnectionException",
    "This stream is currently at the maximum allowed connection limit.",
    "https://api.x.com/2/problems/streaming-connection",
    { connection_issue: "TooManyConnections" },
  );
}

const CONNECTIONS_MAX = 2;

/** Ids of signals in all the forms that were seen: negative, positive, a UUID, none. */
const ID_FORMS = [
  () => String(-BigInt(randomInt(1, 2 ** 47))),
  () => String(randomInt(1, 2 ** 47)),
  randomUUID,
  () => undefined,
];

/**
 * Sends an event of X's activity stream to all open connections, if the app has subscribed to this type of event. If no
 * connection is open, the event is lost.
 */
function emit(state: XState, type: string, user_id: string | undefined, id: string | undefined, payload: object) {
  const { activity } = state;
  const isWanted = [...activity.subscriptions.values()].some(
    ({ event_type, filter }) => event_type === type && (user_id === undefined || filter["user_id"] === user_id),
  );
  if (!isWanted) return;
  const event_uuid = ID_FORMS[activity.signals.total % ID_FORMS.length]!();
  const filter = user_id === undefined ? {} : { user_id };
  const line = `${JSON.stringify({ data: { event_uuid, filter, event_type: type, payload } })}\r\n`;
  const damage = activity.connections.size === 0 ? undefined : activity.damage();
  const isLost = damage === "stream_drop" || damage === "stream_cut" || damage === "stream_disconnect";
  activity.signals.add({ type, id, connections: isLost ? 0 : activity.connections.size });
  if (BILLED.includes(type) && !isLost && activity.connections.size > 0) bill(state, { messages: 1 });
  if (damage === "stream_drop") return;
  if (damage === "stream_reorder" && activity.late === undefined) {
    activity.late = line;
    return;
  }
  for (const connection of activity.connections) transmit(connection, line, damage);
  flushLate(state);
}

function transmit(connection: Connection, line: string, damage: Damage | undefined): void {
  if (damage === "stream_cut") {
    connection.write(line.slice(0, line.length / 2));
    // The event loop has to write the half line before the connection is cut.
    setImmediate(() => connection.end("cut"));
    return;
  }
  if (damage === "stream_disconnect") {
    connection.write(`${JSON.stringify({ errors: [DISCONNECT] })}\r\n`);
    connection.end("end");
    return;
  }
  connection.write(line);
  if (damage === "stream_repeat") connection.write(line);
}

const DISCONNECT = {
  title: "operational-disconnect",
  disconnect_type: "UpstreamOperationalDisconnect",
  detail: "This stream has been disconnected upstream for operational reasons.",
  type: "https://api.x.com/2/problems/operational-disconnect",
};

function flushLate({ activity }: XState): void {
  const { late } = activity;
  activity.late = undefined;
  if (late !== undefined) for (const connection of activity.connections) connection.write(late);
}

/** Signals to the app that a message has arrived. */
export function signalReceived(state: XState, { id, sender_id, recipient_id, text, created_at }: DirectMessage): void {
  emit(state, "dm.received", recipient_id, id, {
    direct_message_events: [
      {
        type: "message_create",
        id,
        created_timestamp: String(created_at),
        message_create: {
          target: { recipient_id },
          sender_id,
          message_data: { text, entities: { hashtags: [], symbols: [], user_mentions: [], urls: [] } },
        },
      },
    ],
    users: usersOf(state, [sender_id, recipient_id]),
  });
}

/**
 * Signals to the app that the person `from` has read the messages of `to`, in one of the two forms that were seen. Only
 * the older form names the last message that was read.
 */
export function signalRead(state: XState, from: string, to: string, lastReadId?: string): void {
  const created_timestamp = String(state.clock.now());
  const users = usersOf(state, [from]);
  const older = { created_timestamp, sender_id: from, target: { recipient_id: to }, last_read_event_id: lastReadId };
  const newer = { created_timestamp, initiating_user_id: from };
  emit(
    state,
    "dm.read",
    to,
    undefined,
    lastReadId === undefined
      ? { direct_message_events: [newer], users }
      : { direct_message_mark_read_events: [older], users },
  );
}

/** Signals to the app that a message of X Chat has arrived, whose words are encrypted. */
export function signalChat(state: XState, from: string, to: string): void {
  const id = randomUUID();
  emit(state, "chat.received", to, id, {
    conversation_token: "eyJ0b2tlbiI6InNhbmRib3gifQ",
    id,
    created_at_msec: String(state.clock.now()),
    sender_id: from,
    conversation_id: `${from}:${to}`,
    conversation_key_version: "1",
    encoded_event: Buffer.from(randomUUID()).toString("base64"),
    message_event_signature: { public_key_version: "1", signature: "c2FuZGJveA==", signature_version: "4" },
  });
}

/**
 * Has the imitated X signal to the app that a user has revoked its access, and forgets the subscriptions that were made
 * with the user's tokens.
 */
export function signalRevoked(state: XState, user_id: string): void {
  emit(state, REVOKE, undefined, undefined, {
    date_time: new Date(state.clock.now()).toISOString(),
    user_id,
    app_id: "1",
  });
  const { subscriptions } = state.activity;
  for (const [id, { filter }] of subscriptions) if (filter["user_id"] === user_id) subscriptions.delete(id);
}

function usersOf(state: XState, ids: readonly string[]) {
  return Object.fromEntries(
    ids.map((id) => {
      const { username, name } = findById(state, id) ?? { username: "", name: "" };
      const public_metrics = { followers_count: 97, followers_count_str: "97", tweet_count: 50 };
      return [id, { data: { id, username, name, protected: false, verified: false, public_metrics } }];
    }),
  );
}
