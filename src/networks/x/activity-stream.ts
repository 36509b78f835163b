import { Type, type Static } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { Secret } from "../../platform/secret.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { parseAnswer } from "../classify-answer.ts";
import { SocialError, type Signal, type SignalStream } from "../network.ts";
import { JSON_BODY, type LineFetch } from "../safe-fetch.ts";
import { createReads, type XOptions } from "./send-get-request.ts";
import { ID, readFailure, USERNAME } from "./interpret-answer.ts";
import { asWritten, ENTITIES } from "./read-messages.ts";

/** Types of event that are subscribed to with the user's token: https://docs.x.com/x-api/activity/introduction */
const PRIVATE_TYPES = ["dm.received", "dm.read", "chat.received"];

/** Type that X's guide has and X's specification lacks, so X may refuse it. */
const REVOKE = "oauth.revoke";

/** Maximum time in ms until the stream's head arrives: an idle stream answers with its first keep-alive, after 20 s. */
const ANSWER_MS = 45_000;

/**
 * Time in ms without a byte from the activity stream after which the client closes the connection. X sends a keep-alive
 * every 20 s.
 */
const SILENCE_MS = 40_000;

/**
 * Maximum number of characters of a line: a message of 10,000 characters, all escaped, and the profiles of two users.
 */
const LINE_CHARACTERS_MAX = 256 * 1024;

const SUBSCRIBE_TIMEOUT_MS = 10_000;

/** Maximum size of a page of 1,000 subscriptions, in bytes. */
const SUBSCRIPTIONS_BYTES_MAX = 1024 * 1024;

const SUBSCRIPTIONS = Type.Object({
  data: Type.Optional(
    Type.Array(
      Type.Object({
        event_type: Type.String(),
        filter: Type.Optional(Type.Object({ user_id: Type.Optional(Type.String()) })),
      }),
    ),
  ),
});

export interface ActivityOptions extends XOptions {
  /** The app's own token, which lists subscriptions and opens the stream. */
  readonly bearer: Secret;
  readonly lineFetch: LineFetch;
}

/** Creates the client of X's Activity API: https://docs.x.com/x-api/activity/introduction */
export function createActivityStream(options: ActivityOptions): SignalStream {
  const { apiUrl, bearer, lineFetch, clock } = options;
  return {
    async check() {
      await listSubscriptions(options, "");
    },
    async subscribe(token, userId) {
      const present = await listSubscriptions(options, userId);
      const refused: string[] = [];
      for (const type of [...PRIVATE_TYPES, REVOKE].filter((one) => !present.has(one))) {
        const why = await create(options, token, type, userId);
        // A refusal of `oauth.revoke` is no loss: without that signal, the next refresh of the token shows that the
        // user has revoked it.
        if (why !== undefined && type !== REVOKE) refused.push(`${type}: ${why}`);
      }
      return refused;
    },
    async open(userId, signal) {
      const answer = await lineFetch(`${apiUrl}/2/activity/stream`, {
        // The stream is requested uncompressed, because a compressed one would be held back until a block is full.
        headers: { authorization: `Bearer ${bearer.reveal()}`, "accept-encoding": "identity" },
        answerMs: ANSWER_MS,
        silenceMs: SILENCE_MS,
        lineCharactersMax: LINE_CHARACTERS_MAX,
        signal,
      });
      if (answer.lines === undefined) throw blameBearer(readFailure(answer, clock()));
      return toSignals(answer.lines, userId, clock);
    },
  };
}

/**
 * Converts X's refusal of the app's own token to an error that names the setting. Otherwise it would look like a
 * refusal of the user's token, which would then be refreshed.
 */
function blameBearer(fault: unknown): unknown {
  const isRefused = fault instanceof SocialError && fault.kind === "unauthorized";
  return isRefused ? new SocialError("rejected", "X does not accept X_APP_BEARER_TOKEN") : fault;
}

/**
 * Returns the types of event that the app is subscribed to on X for this user, and those that need no user. X allows
 * 1,500 subscriptions; only 1,000 are read. Subscribing again to an unread one does no harm: X answers as a duplicate.
 */
async function listSubscriptions(options: ActivityOptions, userId: string): Promise<ReadonlySet<string>> {
  const list = { path: "/2/activity/subscriptions", query: { max_results: "1000" } };
  const read = createReads(options)(options.bearer.reveal());
  const text = await read({ ...list, answerBytesMax: SUBSCRIPTIONS_BYTES_MAX }).catch((fault: unknown) => {
    throw blameBearer(fault);
  });
  const { data = [] } = parseAnswer(SUBSCRIPTIONS, text) ?? {};
  const own = data.filter(({ filter }) => (filter?.user_id ?? userId) === userId);
  return new Set(own.map(({ event_type }) => event_type));
}

/**
 * Subscribes to a type of event. Returns X's words if it refuses this type; throws a SocialError if it refuses the token
 * or the rate. X documents three forms of a successful answer, none of which is needed.
 */
async function create({ apiUrl, safeFetch, clock }: ActivityOptions, token: string, type: string, userId: string) {
  const filter = type === REVOKE ? {} : { user_id: userId };
  const answer = await safeFetch(`${apiUrl}/2/activity/subscriptions`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, ...JSON_BODY },
    body: JSON.stringify({ event_type: type, filter, tag: "reachlog" }),
    timeoutMs: SUBSCRIBE_TIMEOUT_MS,
  });
  const isThere = answer.status === 409 || answer.text.includes("DuplicateSubscription");
  if ((answer.status >= 200 && answer.status < 300) || isThere) return undefined;
  const failure = readFailure(answer, clock());
  if (failure.kind === "rejected" || failure.kind === "stopped") return failure.message;
  throw failure;
}

const MS = Type.String({ pattern: "^[0-9]{1,15}$" });
const ANY_ID = Type.String({ minLength: 1, maxLength: 100 });
const USERS = Type.Record(Type.String(), Type.Unknown());

const LINE = Type.Object({
  data: Type.Object({
    event_type: Type.String(),
    filter: Type.Optional(Type.Object({ user_id: Type.Optional(Type.String()) })),
    payload: Type.Unknown(),
  }),
});

const RECEIVED = Type.Object({
  direct_message_events: Type.Array(
    Type.Object({
      id: ID,
      created_timestamp: MS,
      message_create: Type.Object({
        sender_id: ID,
        target: Type.Optional(Type.Object({ recipient_id: Type.Optional(Type.String()) })),
        message_data: Type.Object({ text: Type.Optional(Type.String()), entities: ENTITIES }),
      }),
    }),
    { minItems: 1 },
  ),
  users: Type.Optional(USERS),
});

const READERS = Type.Optional(
  Type.Array(
    Type.Object({
      created_timestamp: Type.Optional(MS),
      initiating_user_id: Type.Optional(ID),
      sender_id: Type.Optional(ID),
      last_read_event_id: Type.Optional(ID),
    }),
  ),
);

/** Both forms in which X reports that messages were read. X's documents show neither for this stream. */
const READ = Type.Object({ direct_message_events: READERS, direct_message_mark_read_events: READERS });

const CHAT = Type.Object({ id: ANY_ID, created_at_msec: MS, sender_id: ID, conversation_id: Type.String() });

const REVOKED = Type.Object({ user_id: ID });

const PROFILE = Type.Object({ data: Type.Object({ username: USERNAME }) });

/** Turns lines of X's activity stream into signals for this user. Skips keep-alives, other users, and unknown types. */
async function* toSignals(lines: AsyncIterable<string>, userId: string, clock: () => number): AsyncGenerator<Signal> {
  for await (const line of lines) {
    const { data } = parseAnswer(LINE, line) ?? {};
    if (data === undefined || (data.filter?.user_id ?? userId) !== userId) continue;
    yield* PARSERS[data.event_type]?.(data.payload, userId, clock()) ?? [];
  }
}

/** Function that turns a payload into signals. */
type Parser = (payload: unknown, userId: string, now: number) => readonly Signal[];

/** Stands for a signal that could not be read: the messages must be read from X to find what it meant. */
const UNCLEAR: readonly Signal[] = [{ kind: "unclear" }];

const PARSERS: Readonly<Record<string, Parser>> = {
  "dm.received": (payload, userId) =>
    Value.Check(RECEIVED, payload)
      ? payload.direct_message_events.map((event): Signal => toMessage(event, payload.users, userId))
      : UNCLEAR,
  "dm.read": (payload, _userId, now) => {
    if (!Value.Check(READ, payload)) return [];
    const { direct_message_events: newer = [], direct_message_mark_read_events: older = [] } = payload;
    return [...newer, ...older].flatMap(({ created_timestamp, initiating_user_id, sender_id, last_read_event_id }) => {
      const readerId = initiating_user_id ?? sender_id;
      const at = created_timestamp === undefined ? now : Number(created_timestamp);
      return readerId === undefined
        ? []
        : [{ kind: "read" as const, readerId, at, ...omitUndefined({ lastReadId: last_read_event_id }) }];
    });
  },
  "chat.received": (payload) => {
    if (!Value.Check(CHAT, payload)) return [];
    const { id, created_at_msec, sender_id: senderId, conversation_id } = payload;
    const inGroup = !/^\d+[:-]\d+$/.test(conversation_id);
    return [{ kind: "chat", id, senderId, createdAt: Number(created_at_msec), inGroup }];
  },
  [REVOKE]: (payload) => (Value.Check(REVOKED, payload) ? [{ kind: "revoked", userId: payload.user_id }] : []),
};

function toMessage(
  { id, created_timestamp, message_create }: Static<typeof RECEIVED>["direct_message_events"][number],
  users: Static<typeof USERS> | undefined,
  userId: string,
): Signal {
  const { sender_id: senderId, target, message_data } = message_create;
  const profile = users?.[senderId];
  const senderUsername = Value.Check(PROFILE, profile) ? profile.data.username : undefined;
  const inGroup = target?.recipient_id === userId ? {} : { inGroup: true as const };
  const createdAt = Number(created_timestamp);
  return {
    kind: "message",
    message: { id, senderId, senderUsername, text: asWritten(message_data), createdAt, ...inGroup },
  };
}
