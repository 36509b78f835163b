import {
  SocialError,
  type SendDmResult,
  type SentDm,
  type SocialNetwork,
  type SocialUser,
} from "../../src/networks/network.ts";

/** The account that the service acts for. */
export const OWN = { id: "1", username: "we", name: "We" };

/** What the network does with one message instead of taking it. */
export type Answer =
  | Exclude<SendDmResult, { outcome: "sent" | "rate_limited" | "in_doubt" }>["outcome"]
  | { readonly waitMs: number }
  | { readonly doubt: "delivered" | "lost"; readonly lateMs?: number }
  | { readonly stop: Extract<SendDmResult, { outcome: "stopped" }>["reason"] };

/** A message that the network took. */
export interface Accepted extends SentDm {
  readonly recipientId: string;
}

export interface SimulatedNetwork extends SocialNetwork {
  readonly people: Map<string, SocialUser>;
  /** Every message that it took, in order. */
  readonly accepted: Accepted[];
  /** Ids of the recipients of all requests to send, taken or not. */
  readonly asked: string[];
  /** Answers for the next messages; when there are none it takes them. */
  readonly answers: Answer[];
  /** Faults of the next reads, one after the other. */
  readonly faults: (SocialError | undefined)[];
  /** What was read, e.g. `usersById 1,2`. */
  readonly reads: string[];
}

/** A social network in memory that tells what it took. A message may become visible late, as networks do. */
export function createSimulatedNetwork(now: () => number): SimulatedNetwork {
  const people = new Map<string, SocialUser>();
  const accepted: Accepted[] = [];
  const visibleAt = new Map<string, number>();
  const replies: Accepted[] = [];
  const asked: string[] = [];
  const answers: Answer[] = [];
  const faults: (SocialError | undefined)[] = [];
  const reads: string[] = [];

  const read = (what: string): void => {
    reads.push(what);
    const fault = faults.shift();
    if (fault !== undefined) throw fault;
  };
  const find = (is: (user: SocialUser) => boolean): SocialUser | undefined => [...people.values()].find(is);

  const take = (recipientId: string, text: string, lateMs = 0): string => {
    const id = String(9_000 + accepted.length);
    accepted.push({ id, senderId: OWN.id, text, createdAt: now(), recipientId });
    visibleAt.set(id, now() + lateMs);
    return id;
  };

  return {
    network: "simulated",
    people,
    accepted,
    asked,
    answers,
    faults,
    reads,
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
    async followers(_token, _userId, cursor) {
      read(`followers ${cursor ?? ""}`);
      const from = Number(cursor ?? 0);
      const users = [...people.values()].slice(from, from + 2);
      return from + 2 < people.size ? { users, next: String(from + 2) } : { users };
    },
    async sendDm(_token, recipientId, text) {
      asked.push(recipientId);
      return answerOf(answers.shift(), { recipientId, text, now: now(), take });
    },
    async conversation(_token, recipientId, limit) {
      read(`conversation ${recipientId} ${limit}`);
      const visible = accepted.filter((dm) => (visibleAt.get(dm.id) ?? 0) <= now());
      return [...visible, ...replies]
        .filter((dm) => dm.recipientId === recipientId)
        .slice(-limit)
        .toReversed();
    },
  };
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

/** Somebody who can be written to, unless `more` says otherwise. */
export function person(id: string, more: Partial<SocialUser> = {}): SocialUser {
  return { id, username: `user_${id}`, name: `Name ${id}`, receivesOurDm: true, protected: false, ...more };
}
