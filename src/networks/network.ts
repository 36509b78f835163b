/**
 * The port to the outside: what the service asks of a network, and the only answers it understands.
 * One file a network implements it; nothing else knows their URLs, bodies or error codes.
 */

import type { Recorded } from "../../events/catalog.ts";
import type { ChannelName } from "../../events/channel.ts";
import type { Secret } from "../platform/secret.ts";
import { ServiceError } from "../platform/service-error.ts";

/** What a channel can be asked to deliver. The channel words it for its own network. */
export type Dispatch = {
  /** Of a click its event's; the de-duplication key where a network has one. */
  readonly id: string;
  /** When it was recorded, of a digest the last of its clicks; ISO 8601. */
  readonly time: string;
} & (
  | {
      readonly kind: "click";
      readonly event: string;
      readonly domain: string;
      readonly shortCode: string;
      /** As it was posted. */
      readonly originalUrl: string;
      /** As a browser asks for it. */
      readonly normalizedUrl: string;
      readonly ip: string | undefined;
      readonly userAgent: string | undefined;
      readonly bot: boolean;
    }
  | { readonly kind: "notification"; readonly message: string; readonly service: string; readonly level: string }
  | { readonly kind: "message"; readonly text: string }
  | {
      /** Many clicks in one message, where a channel cannot keep up with each. */
      readonly kind: "digest";
      readonly clicks: number;
      /** Of these, by bots. */
      readonly bots: number;
      /** The most clicked first. */
      readonly links: readonly DigestLink[];
    }
  | { readonly kind: "test" }
  /** For a program, whatever it is. */
  | { readonly kind: "event"; readonly event: Recorded }
);

export interface DigestLink {
  readonly domain: string;
  readonly shortCode: string;
  readonly clicks: number;
  readonly bots: number;
  /** Times of the first and the last of its clicks, ISO 8601. */
  readonly first: string;
  readonly last: string;
}

export type Click = Extract<Dispatch, { kind: "click" }>;

/**
 * `delivered`: the network took it.
 * `retryable`: certainly not delivered (or the network de-duplicates: `mayHaveArrived`), may be sent again.
 * `in_doubt`: it may have arrived and a repeat could double it.
 * `refused`: this one will never be taken; `channel` says whether the channel as a whole is at fault
 * (revoked credential, archived channel) rather than this dispatch.
 * `skipped`: must not be sent by the network's own rules.
 * `detail` never holds a credential or personal data.
 */
export type DispatchResult =
  | {
      readonly outcome: "delivered";
      readonly status: number;
      readonly networkId?: string;
      /** The network's account of our use suggests to wait so long before the next request. */
      readonly pauseMs?: number;
    }
  | { readonly outcome: "skipped"; readonly reason: "no_user_agent" | "too_old" }
  | ({ readonly detail: string; readonly status?: number } & (
      | {
          readonly outcome: "retryable";
          readonly retryAfterMs?: number;
          /** It may have arrived: a repeat doubles nothing for {@link Channel.recognisesMs}, and by the same id only. */
          readonly mayHaveArrived?: true;
          /** Of a batch that ended early: no request was made for this one, so it is no attempt. */
          readonly unasked?: true;
        }
      | { readonly outcome: "in_doubt" }
      | { readonly outcome: "refused"; readonly channel: boolean }
    ));

/** `now` in ms since the epoch. */
export interface SendOptions {
  readonly timeoutMs: number;
  readonly now: number;
  /** Asked before each further request; default: all are made. */
  readonly goesOn?: () => boolean;
}

export interface Channel {
  readonly name: ChannelName;
  /** The network's name, e.g. `slack`. */
  readonly network: string;
  /** What the network knows us by: when it changes, a suspended channel is tried again. Never shown. */
  readonly credential: Secret;
  /** For how long after the first request the network takes a repeat for what it is; absent: it never does. */
  readonly recognisesMs?: number;
  /** Of a webhook: an event waits while an earlier one of its stream is pending. */
  readonly isInOrder?: boolean;
  /** Of a webhook: whether an event is posted; absent: each is. Throws {@link FilterFailed}. */
  readonly filter?: (event: Recorded) => boolean;
  /** Several clicks in one request, for a network that takes them: a result for each, in their order. Never throws. */
  readonly batch?: {
    readonly max: number;
    send(clicks: readonly Click[], options: SendOptions): Promise<readonly DispatchResult[]>;
  };
  /** Makes exactly one attempt within `timeoutMs`. Never throws for what a network can do. */
  send(dispatch: Dispatch, options: SendOptions): Promise<DispatchResult>;
  /** Checks the credential without sending anything where the network allows it (`doctor --online`). */
  check(timeoutMs: number): Promise<CredentialCheck>;
}

/** `detail`: what answered, or what to put right. */
export interface CredentialCheck {
  readonly ok: boolean;
  readonly detail: string;
}

export interface SocialUser {
  readonly id: string;
  readonly username: string;
  readonly name: string;
  /** Undefined where the network does not say. */
  readonly receivesOurDm: boolean | undefined;
  readonly protected: boolean | undefined;
}

/**
 * The window to keep to after an answer, by its rate-limit headers: of exhausted ones the one that resets last, else
 * the shortest. `resetAt` is in ms since the epoch of our clock: the difference to the network's (its `Date` header) is
 * already taken out.
 */
export interface RateWindow {
  readonly limit: number;
  readonly remaining: number;
  readonly resetAt: number;
}

/**
 * `in_doubt`: it may have arrived; never send it again unread.
 * `unreachable`: no connection came about, so it certainly did not arrive, and the recipient may be tried again.
 * `recipient_closed`: refused for this person, which a code or the words say. `not_permitted`: refused without saying why;
 * many in a row are refused for the account.
 * `rejected`: the network refused this message for what it is.
 * `rate_limited`: certainly not delivered; the same message may be sent from `retryAt` (ms since the epoch) on.
 */
export type SendDmResult = { readonly rate: RateWindow | undefined } & (
  | { readonly outcome: "sent"; readonly messageId: string }
  | { readonly outcome: "rate_limited"; readonly retryAt: number }
  | {
      readonly outcome: "recipient_closed" | "not_permitted" | "rejected" | "in_doubt" | "unreachable";
      readonly detail: string;
    }
  | { readonly outcome: "unauthorized" }
  /** The account as a whole may not send: the run ends with this reason. */
  | { readonly outcome: "stopped"; readonly reason: StopReason; readonly detail: string }
);

/** Why the network stops an account, as the end of the run records it; `app_not_enrolled`: the app's access is at fault. */
export type StopReason =
  "credits_depleted" | "usage_capped" | "sender_restricted" | "missing_scope" | "app_not_enrolled";

/** A read failed: what kind, so that the run knows whether to wait, to refresh or to end. */
export class SocialError extends ServiceError<
  "unauthorized" | "rate_limited" | "stopped" | "unavailable" | "rejected"
> {
  override readonly name = "SocialError";
  readonly retryAt: number | undefined;
  readonly stop: StopReason | undefined;
  constructor(
    kind: SocialError["kind"],
    detail: string,
    more: { readonly retryAt?: number; readonly stop?: StopReason } = {},
  ) {
    super(kind, detail);
    this.retryAt = more.retryAt;
    this.stop = more.stop;
  }
}

export interface SentDm {
  readonly id: string;
  readonly senderId: string;
  /** As the author wrote it: shortened links are expanded back. */
  readonly text: string;
  readonly createdAt: number;
}

/** A message of any of our conversations, ours too. */
export interface InboxMessage extends SentDm {
  /** Undefined where the network does not say. */
  readonly senderUsername: string | undefined;
  /** Of a conversation of several people: it was not written to us alone. */
  readonly inGroup?: true;
}

/** Which part of a long list is wanted. `limit`: at most so many entries, as near as the network allows. */
export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string;
}

/** `next`: the cursor of the page behind this one; absent at the end. */
export interface UserPage {
  readonly users: readonly SocialUser[];
  readonly next?: string;
}

/** What a network charges for each, in millionths of a dollar: sums of whole numbers do not drift. */
export interface Prices {
  readonly send: number;
  readonly user: number;
  /** A follower of our own account, which may cost less than other people. */
  readonly follower: number;
  readonly post: number;
  readonly message: number;
}

/** The social network, with the access token given to each call. Reads throw {@link SocialError}. */
export interface SocialNetwork {
  readonly network: string;
  me(token: string): Promise<Pick<SocialUser, "id" | "username" | "name">>;
  /** Up to 100 at once; those the network does not know, or could not know by their form, are absent. */
  usersByUsername(token: string, usernames: readonly string[]): Promise<readonly SocialUser[]>;
  usersById(token: string, ids: readonly string[]): Promise<readonly SocialUser[]>;
  /** Newest first, like the two below. */
  followers(token: string, userId: string, page: PageRequest): Promise<UserPage>;
  listMembers(token: string, listId: string, page: PageRequest): Promise<UserPage>;
  /**
   * Authors of recent posts that match, each once a page. `since`: only posts newer than that one. `newest` is the
   * newest post of the page, `posts` how many were read.
   */
  searchAuthors(
    token: string,
    query: string,
    page: PageRequest & { readonly since?: string },
  ): Promise<UserPage & { readonly newest?: string; readonly posts: number }>;
  /** Makes exactly one POST. Never throws for what a network can do. */
  sendDm(token: string, recipientId: string, text: string): Promise<SendDmResult>;
  /**
   * The newest messages of our conversation with one person, newest first, `limit` at the most. An answer that does
   * not say so for certain throws `unavailable`: an absent message counts as not delivered.
   */
  conversation(token: string, recipientId: string, limit: number): Promise<readonly SentDm[]>;
  /** The newest messages of all our conversations, newest first. */
  inbox(
    token: string,
    page: PageRequest,
  ): Promise<{ readonly messages: readonly InboxMessage[]; readonly next?: string }>;
}
