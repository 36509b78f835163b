import {
  SocialError,
  type InboxMessage,
  type PageRequest,
  type SendDmResult,
  type SentDm,
  type SocialNetwork,
  type SocialUser,
  type UserPage,
} from "../../../src/networks/network.ts";

/** The service's own account on the simulated network. */
export const OWN = { id: "1", username: "we", name: "We" };

/** Age up to which the simulated network shows messages: 30 days, as X does. */
export const SHOWN_MS = 30 * 24 * 3_600_000;

/** A reaction of the simulated network to a message that it does not simply accept. */
export type Answer =
  | Exclude<SendDmResult, { outcome: "sent" | "rate_limited" | "in_doubt" }>["outcome"]
  | { readonly waitMs: number }
  | { readonly doubt: "delivered" | "lost"; readonly lateMs?: number }
  | { readonly stop: Extract<SendDmResult, { outcome: "stopped" }>["reason"] };

/**
 * Where the simulated network's cursors lead. `onward`: to the next page, as they should; `same`: to the same page
 * again; `around`: from the last page to the second; `empty`: only to empty pages.
 */
export type Cursors = "onward" | "same" | "around" | "empty";

/** A message that the simulated network accepted. */
export interface Accepted extends SentDm {
  readonly recipientId: string;
}

/** A public post on the simulated network that a search may find. */
interface Post {
  readonly id: string;
  readonly authorId: string;
  readonly text: string;
}

export interface SimulatedNetwork extends SocialNetwork {
  readonly people: Map<string, SocialUser>;
  /** Lists on the simulated network: id of a list -> ids of its members, newest first. */
  readonly lists: Map<string, readonly string[]>;
  /** Maximum number of entries that the simulated network gives in a page of people or of the inbox. */
  pageMax: number;
  cursors: Cursors;
  /** Ids of people who refuse our messages although their profile does not say so. */
  readonly forbidding: Set<string>;
  /** All messages that the simulated network accepted, in order. */
  readonly accepted: Accepted[];
  /** Ids of the recipients of all requests to send a message, accepted or not. */
  readonly asked: string[];
  /** Reactions to the next messages, in order. The network accepts a message whose entry is undefined or missing. */
  readonly answers: (Answer | undefined)[];
  /**
   * Faults of the next reads, in order; a read whose entry is undefined or missing has none. Readings of the inbox do
   * not use them.
   */
  readonly faults: (SocialError | undefined)[];
  /**
   * Requests by which the service has read from the network so far, such as `usersById 1,2`. Readings of the inbox are
   * not listed, because every run makes them.
   */
  readonly reads: string[];
  readonly inboxFaults: (SocialError | undefined)[];
  /** Cursors with which the inbox was read so far; "" for its top. */
  readonly inboxReads: string[];
  /** Makes a person write to us; the message is visible `lateMs` later. Returns the message's id. */
  receive(personId: string, text: string, lateMs?: number): string;
  /** Makes a person publish a post. Returns the post's id. */
  post(authorId: string, text: string): string;
}

/**
 * Simulated social network in memory that records the messages it accepted. A message may become visible late, as on
 * real networks.
 */
export function createSimulatedNetwork(now: () => number): SimulatedNetwork {
  const people = new Map<string, SocialUser>();
  const lists = new Map<string, readonly string[]>();
  const posts: Post[] = [];
  const accepted: Accepted[] = [];
  const mail = createMail(now);
  const asked: string[] = [];
  const answers: (Answer | undefined)[] = [];
  const faults: (SocialError | undefined)[] = [];
  const reads: string[] = [];
  const inboxFaults: (SocialError | undefined)[] = [];
  const inboxReads: string[] = [];

  const read = (what: string): void => {
    reads.push(what);
    const fault = faults.shift();
    if (fault !== undefined) throw fault;
  };
  const find = (is: (user: SocialUser) => boolean): SocialUser | undefined => [...people.values()].find(is);

  const take = (recipientId: string, text: string, lateMs = 0): string => {
    const dm = mail.add({ senderId: OWN.id, text, recipientId }, lateMs);
    accepted.push(dm);
    return dm.id;
  };

  /**
   * Cursor of the second page of the list that was begun last. If `network.cursors` is `around`, the last page leads
   * back to this cursor.
   */
  let second: string | undefined;
  let empty = 0;
  const astray = <Shown extends { readonly next?: string }>(
    cursor: string | undefined,
    page: Shown,
    nothing: Shown,
  ): Shown => {
    if (cursor === undefined) second = page.next;
    if (cursor === undefined || network.cursors === "onward") return page;
    if (network.cursors === "same") return { ...page, next: cursor };
    if (network.cursors === "empty") return { ...nothing, next: String((empty += 1)) };
    return page.next === undefined && second !== undefined ? { ...page, next: second } : page;
  };

  const network: SimulatedNetwork = {
    network: "simulated",
    people,
    lists,
    pageMax: 2,
    cursors: "onward",
    forbidding: new Set(),
    accepted,
    asked,
    answers,
    faults,
    reads,
    inboxFaults,
    inboxReads,
    receive: (personId, text, lateMs = 0) => mail.add({ senderId: personId, text, recipientId: personId }, lateMs).id,
    post(authorId, text) {
      const id = mail.nextId();
      posts.unshift({ id, authorId, text });
      return id;
    },
    async me() {
      read("me");
      return OWN;
    },
    async usersById(_token, ids) {
      read(`usersById ${ids.join(",")}`);
      return ids.flatMap((id) => people.get(id) ?? []);
    },
    async usersByUsername(_token, names) {
      read(`usersByUsername ${names.join(",")}`);
      const wanted = (name: string) => find(({ username }) => username.toLowerCase() === name.toLowerCase());
      return names.flatMap((name) => wanted(name) ?? []);
    },
    async followers(_token, _userId, page) {
      read(`followers ${page.cursor ?? ""}`);
      return astray(page.cursor, pageOf([...people.values()], network.pageMax, page), { users: [] });
    },
    async listMembers(_token, listId, page) {
      read(`listMembers ${listId} ${page.cursor ?? ""}`);
      const members = (lists.get(listId) ?? []).flatMap((id) => people.get(id) ?? []);
      return astray(page.cursor, pageOf(members, network.pageMax, page), { users: [] });
    },
    async searchAuthors(_token, query, { limit, cursor, since }) {
      read(`searchAuthors ${query} ${cursor ?? ""}`);
      const found = posts.filter(
        ({ id, text }) => text.includes(query) && isBefore(id, cursor) && (since === undefined || isBefore(since, id)),
      );
      const shown = found.slice(0, Math.min(limit, network.pageMax));
      const authors = new Set(shown.map(({ authorId }) => authorId));
      const users = [...authors].flatMap((id) => people.get(id) ?? []);
      const [newest] = shown;
      const last = shown.at(-1);
      return {
        users,
        posts: shown.length,
        ...(newest === undefined ? {} : { newest: newest.id }),
        ...(last === undefined || shown.length === found.length ? {} : { next: last.id }),
      };
    },
    async sendDm(_token, recipientId, text) {
      asked.push(recipientId);
      if (network.forbidding.has(recipientId)) return answerOf(FORBIDDEN, { recipientId, text, now: now(), take });
      return answerOf(answers.shift(), { recipientId, text, now: now(), take });
    },
    async conversation(_token, recipientId, limit) {
      read(`conversation ${recipientId} ${limit}`);
      return mail
        .visible()
        .filter((dm) => dm.recipientId === recipientId)
        .slice(0, limit);
    },
    async inbox(_token, { limit, cursor }) {
      inboxReads.push(cursor ?? "");
      const fault = inboxFaults.shift();
      if (fault !== undefined) throw fault;
      const older = mail.visible().filter(({ id }) => isBefore(id, cursor));
      const messages = older
        .slice(0, Math.min(limit, network.pageMax))
        .map(({ recipientId: _recipientId, ...dm }): InboxMessage => ({
          ...dm,
          senderUsername: dm.senderId === OWN.id ? OWN.username : people.get(dm.senderId)?.username,
        }));
      const last = messages.at(-1);
      const isEnd = last === undefined || messages.length === older.length;
      return astray(cursor, { messages, ...(isEnd ? {} : { next: last.id }) }, { messages: [] });
    },
  };
  return network;
}

/** Reaction that leaves open, like X's 403, if it is due to the recipient alone or to the account. */
const FORBIDDEN: Answer = "not_permitted";

/**
 * Mailbox of the simulated network: all messages in both directions. Like X's, their ids grow with time and are
 * compared as numbers.
 */
function createMail(now: () => number) {
  const all: { readonly dm: Accepted; readonly visibleAt: number }[] = [];
  let lastId = 0n;

  const nextId = (): string => {
    const byTime = BigInt(now()) << SEQUENCE_BITS;
    lastId = byTime > lastId ? byTime : lastId + 1n;
    return String(lastId);
  };

  return {
    nextId,
    add(message: Omit<Accepted, "id" | "createdAt">, lateMs: number): Accepted {
      const dm = { id: nextId(), createdAt: now(), ...message };
      all.push({ dm, visibleAt: now() + lateMs });
      return dm;
    },
    /** Returns the messages that are visible now, newest first. */
    visible: (): Accepted[] =>
      all
        .filter(({ dm, visibleAt }) => visibleAt <= now() && now() - dm.createdAt <= SHOWN_MS)
        .map(({ dm }) => dm)
        .toReversed(),
  };
}

/** Number of the lowest bits of a snowflake id. They tell messages of the same millisecond apart. */
const SEQUENCE_BITS = 22n;

function isBefore(id: string, than: string | undefined): boolean {
  return than === undefined || BigInt(id) < BigInt(than);
}

function pageOf(people: readonly SocialUser[], pageMax: number, { limit, cursor }: PageRequest): UserPage {
  const from = Number(cursor ?? 0);
  const end = from + Math.min(limit, pageMax);
  const users = people.slice(from, end);
  return end < people.length ? { users, next: String(end) } : { users };
}

interface Sending {
  readonly recipientId: string;
  readonly text: string;
  readonly now: number;
  readonly take: (recipientId: string, text: string, lateMs?: number) => string;
}

function answerOf(answer: Answer | undefined, { recipientId, text, now, take }: Sending): SendDmResult {
  const rate = undefined;
  if (answer === undefined) return { outcome: "sent", messageId: take(recipientId, text), rate };
  if (answer === "unauthorized") return { outcome: answer, rate };
  if (answer === "stopped") return { outcome: answer, reason: "sender_restricted", detail: "told so", rate };
  if (typeof answer === "string") return { outcome: answer, detail: "told so", rate };
  if ("waitMs" in answer) return { outcome: "rate_limited", retryAt: now + answer.waitMs, rate };
  if ("stop" in answer) return { outcome: "stopped", reason: answer.stop, detail: "told so", rate };
  if (answer.doubt === "delivered") take(recipientId, text, answer.lateMs);
  return { outcome: "in_doubt", detail: "no answer", rate };
}

/** Makes a person on the simulated network who can be written to, unless `more` says otherwise. */
export function person(id: string, more: Partial<SocialUser> = {}): SocialUser {
  return { id, username: `user_${id}`, name: `Name ${id}`, receivesOurDm: true, protected: false, ...more };
}
