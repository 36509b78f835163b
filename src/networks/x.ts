import type { Clock } from "../clock.ts";
import { NetworkFault } from "./network-fault.ts";
import { SocialError, type SendDmResult, type SocialNetwork } from "./network.ts";
import type { SafeFetch } from "./safe-fetch.ts";
import { isXId, isXUsername, readConversation, readUser, readUsers } from "./x-bodies.ts";
import { readFailure, sendOutcome } from "./x-outcome.ts";

const READ_TIMEOUT_MS = 10_000;

/** Longer than a read: giving up early costs a message in doubt. It has to stay below IN_DOUBT_SETTLE_SECONDS. */
const SEND_TIMEOUT_MS = 15_000;

/** X's older reference says 10,000 characters; counted in UTF-16 units, which are never fewer. */
const DM_UNITS_MAX = 10_000;

/** What one look-up of users takes, and what one conversation gives. */
const BATCH_MAX = 100;

/** X gives up to 1,000 a page, but only 100 users fit into an answer of 64 KB; the price is per user. */
const FOLLOWERS_PAGE = 100;

const USER_FIELDS = "receives_your_dm,protected";

/** Fields that both versions of X's specification know: `sender_id` comes with the expansion only. */
const DM_EVENT_QUERY = {
  event_types: "MessageCreate",
  "dm_event.fields": "id,event_type,text,created_at,dm_conversation_id,entities",
  expansions: "sender_id",
};

export interface XOptions {
  readonly apiUrl: string;
  readonly safeFetch: SafeFetch;
  readonly clock: Clock;
}

/** X API v2, as far as the service needs it. */
export function createX(options: XOptions): SocialNetwork {
  const read = createRead(options);

  /** A value that X cannot have makes it refuse them all, so only `possible` ones may come here. */
  async function lookUp(token: string, path: string, key: string, possible: readonly string[]) {
    if (possible.length > BATCH_MAX) throw new RangeError(`X looks up at most ${BATCH_MAX} users at once`);
    if (possible.length === 0) return [];
    return readUsers(await read(token, path, { [key]: possible.join(","), "user.fields": USER_FIELDS })).users;
  }

  return {
    network: "x",
    async me(token) {
      const { id, username, name } = readUser(await read(token, "/2/users/me", {}));
      return { id, username, name };
    },
    usersByUsername: (token, usernames) => lookUp(token, "/2/users/by", "usernames", usernames.filter(isXUsername)),
    usersById: (token, ids) => lookUp(token, "/2/users", "ids", ids.filter(isXId)),
    async followers(token, userId, cursor) {
      const text = await read(token, `/2/users/${checkedId(userId)}/followers`, {
        max_results: String(FOLLOWERS_PAGE),
        "user.fields": USER_FIELDS,
        ...(cursor === undefined ? {} : { pagination_token: cursor }),
      });
      return readUsers(text);
    },
    sendDm: (token, recipientId, text) => sendDm(options, token, recipientId, text),
    async conversation(token, recipientId, limit) {
      const max_results = String(Math.min(BATCH_MAX, Math.max(1, limit)));
      const path = `/2/dm_conversations/with/${checkedId(recipientId)}/dm_events`;
      return readConversation(await read(token, path, { max_results, ...DM_EVENT_QUERY }));
    },
  };
}

/** A GET that answers the body of a 200 and throws a {@link SocialError} for everything else. */
function createRead({ apiUrl, safeFetch, clock }: XOptions) {
  return async (token: string, path: string, query: Readonly<Record<string, string>>): Promise<string> => {
    const answer = await safeFetch(`${apiUrl}${path}?${new URLSearchParams(query).toString()}`, {
      method: "GET",
      headers: { authorization: `Bearer ${token}` },
      timeoutMs: READ_TIMEOUT_MS,
    }).catch((fault: unknown) => {
      throw fault instanceof NetworkFault ? new SocialError("unavailable", fault.message) : fault;
    });
    if (answer.status !== 200) throw readFailure(answer, clock());
    return answer.text;
  };
}

async function sendDm(
  { apiUrl, safeFetch, clock }: XOptions,
  token: string,
  recipientId: string,
  text: string,
): Promise<SendDmResult> {
  const refusal = refuseBeforehand(recipientId, text);
  if (refusal !== undefined) return { outcome: "rejected", detail: refusal, rate: undefined };
  try {
    const answer = await safeFetch(`${apiUrl}/2/dm_conversations/with/${recipientId}/messages`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      // X refuses a body with any other field.
      body: JSON.stringify({ text }),
      timeoutMs: SEND_TIMEOUT_MS,
    });
    return sendOutcome(answer, clock());
  } catch (fault) {
    if (!(fault instanceof NetworkFault)) throw fault;
    const outcome = fault.certainlyNotSent ? "unreachable" : "in_doubt";
    return { outcome, detail: fault.message, rate: undefined };
  }
}

function checkedId(id: string): string {
  if (!isXId(id)) throw new SocialError("rejected", "not an id of X");
  return id;
}

function refuseBeforehand(recipientId: string, text: string): string | undefined {
  if (!isXId(recipientId)) return "the recipient's id is not one of X";
  if (text === "") return "the text is empty";
  if (text.length > DM_UNITS_MAX) return `the text is longer than ${DM_UNITS_MAX} characters`;
  return undefined;
}
