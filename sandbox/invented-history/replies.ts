import {
  PRODUCT,
  SCHEDULER,
  STORY_STREAMS,
  type StoryEvent,
  type StoryLog,
  type StoryMailbox,
} from "./story-log-interface.ts";
import type { StoryPerson } from "./people.ts";
import type { Timeline } from "./timeline.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Account that sends the story's messages. */
export const STORY_ACCOUNT = { id: "1700000000000090000", username: "northwind_labs", name: "Northwind Labs" };

/** Reply of a recipient that the story's next run reads. */
interface Reply {
  readonly person: StoryPerson;
  readonly messageId: string;
  readonly at: number;
  readonly kind: keyof typeof TEXTS;
}

/** Share of recipients who reply. */
const REPLY_SHARE = 0.15;
/** Share of replies that ask us to stop. */
const STOP_SHARE = 0.1;
const TEXTS = {
  stop: ["STOP"],
  unclear: ["please no more of these?"],
  reply: ["Thanks, looks good!", "How much is it for a team?", "Not now, maybe in spring.", "Is it in English?"],
};

/**
 * Replies that the demo's invented history always contains. At noon of the given day, the recipient messaged last
 * without a reply sends this kind of reply. The newest run reads the replies of yesterday.
 */
const WANTED: readonly { readonly daysAgo: number; readonly kind: keyof typeof TEXTS }[] = [
  { daysAgo: 5, kind: "stop" },
  { daysAgo: 1, kind: "stop" },
  { daysAgo: 1, kind: "unclear" },
];

/** Creates the part of the story in which recipients answer, and runs read their answers. */
export function createReplies(log: StoryLog, timeline: Timeline, mailbox: StoryMailbox, random: () => number) {
  let unread: Reply[] = [];
  /** Recipients who have not answered, in the order of their messages. */
  const silent: StoryPerson[] = [];

  const answer = (person: StoryPerson, at: number, kind: Reply["kind"]): void => {
    const text = TEXTS[kind][unread.length % TEXTS[kind].length]!;
    unread.push({ person, messageId: mailbox.deliver(person.id, STORY_ACCOUNT.id, text), at, kind });
  };

  for (const { daysAgo, kind } of WANTED) {
    const at = timeline.moment(daysAgo, DAY_MS / 2);
    timeline.at(at, async () => {
      const person = silent.pop();
      if (person !== undefined) answer(person, at, kind);
    });
  }

  return {
    /** Number of messages that the next run reads. */
    countUnread: (): number => unread.length,
    /** Lets the recipient answer some time after our message, or not. */
    plan(person: StoryPerson, sentAt: number): void {
      if (random() >= REPLY_SHARE) return void silent.push(person);
      const at = timeline.after(sentAt, HOUR_MS * (0.1 + 30 * random() ** 3));
      const kind = random() < STOP_SHARE ? "stop" : "reply";
      timeline.at(at, async () => answer(person, at, kind));
    },
    /** Lets a run read the answers since the run before it. */
    async read(run_id: string): Promise<void> {
      const read = unread;
      unread = [];
      const events = read.flatMap(({ person: { id, username }, messageId: message_id, at, kind }): StoryEvent[] => {
        const recipient = { id, username };
        const received = { recipient, message_id, received_at: new Date(at).toISOString() };
        const suppressed = { recipient, reason: "opt_out", hashes: log.hashesOf(recipient), message_id };
        return [
          { type: "DirectMessageReceived", data: received },
          ...(kind === "stop" ? [{ type: "RecipientSuppressed", data: suppressed }] : []),
          ...(kind === "unclear" ? [{ type: "RecipientHeld", data: received }] : []),
        ];
      });
      const newest = read.at(-1)?.messageId;
      const data = { run_id, messages: read.length, ...(newest !== undefined && { newest_id: newest }) };
      await log.append(STORY_STREAMS.outreach, [...events, { type: "InboxRead", data }], SCHEDULER);
    },
  };
}

const TOKEN_MS = 2 * HOUR_MS;
const SCOPES = ["dm.read", "dm.write", "tweet.read", "users.read", "offline.access"];

/**
 * Creates the functions that write the X account's events in the demo's invented history: X grants access, renews it,
 * and takes it back.
 */
export function createAccount(log: StoryLog) {
  const record = (type: string, data: object, caller = PRODUCT) =>
    log.append(STORY_STREAMS.account, [{ type, data }], caller);
  const expiry = (at: number) => ({ expires_at: new Date(at + TOKEN_MS).toISOString() });
  return {
    authorize: (at: number, operator: string) =>
      record("AccountAuthorized", { user: STORY_ACCOUNT, scopes: SCOPES, ...expiry(at) }, operator),
    renew: (at: number) => record("TokenRefreshed", { user_id: STORY_ACCOUNT.id, ...expiry(at) }),
    lose: () =>
      record("TokenRefreshFailed", { user_id: STORY_ACCOUNT.id, reason: "X answered 400 invalid_grant", dead: true }),
  };
}
