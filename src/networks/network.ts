/**
 * The port to the outside: what the service asks of a network, and the only answers it understands. Only a network's
 * own files know its URLs, bodies and error codes.
 */

import type { Recorded } from "../../events/catalog.ts";
import type { ChannelName } from "../../events/channel.ts";
import type { Secret } from "../platform/secret.ts";
import { ServiceError } from "../platform/service-error.ts";

/** A delivery that a channel can be asked to make. The channel words it for its own network. */
export type Dispatch = {
  /** For a click, the id of its event. The de-duplication key, if a network has one. */
  readonly id: string;
  /** When it was recorded, in ISO 8601; for a digest, when its last click was. */
  readonly time: string;
} & (
  | {
      readonly kind: "click";
      readonly event: string;
      readonly domain: string;
      readonly shortCode: string;
      /** As it was posted. */
      readonly originalUrl: string;
      /** As a browser requests it. */
      readonly normalizedUrl: string;
      readonly ip: string | undefined;
      readonly userAgent: string | undefined;
      readonly bot: boolean;
    }
  | { readonly kind: "notification"; readonly message: string; readonly service: string; readonly level: string }
  | { readonly kind: "message"; readonly text: string }
  | {
      /** Many clicks in one message, if a channel cannot keep up with each. */
      readonly kind: "digest";
      readonly clicks: number;
      /** Clicks by bots among them. */
      readonly bots: number;
      /** The most clicked first. */
      readonly links: readonly DigestLink[];
    }
  | { readonly kind: "test" }
  /** An event of the log, for a program. */
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

/** The result of a dispatch. `detail` never holds a credential or personal data. */
export type DispatchResult =
  | {
      /** The network accepted it. */
      readonly outcome: "delivered";
      readonly status: number;
      readonly networkId?: string;
      /** How long to wait before the next request, as the network's report of our use suggests. */
      readonly pauseMs?: number;
    }
  /** The network's own rules forbid sending it. */
  | { readonly outcome: "skipped"; readonly reason: "no_user_agent" | "too_old" }
  | ({ readonly detail: string; readonly status?: number } & (
      | {
          /** Certainly not delivered, or de-duplicated by the network (`mayHaveArrived`): it may be sent again. */
          readonly outcome: "retryable";
          readonly retryAfterMs?: number;
          /** True if it may have arrived. A repeat by the same id doubles nothing for {@link Channel.recognisesMs}. */
          readonly mayHaveArrived?: true;
          /** True if its batch ended early: no request was made for it, so this is no attempt. */
          readonly unasked?: true;
        }
      /** It may have arrived, and a repeat could double it. */
      | { readonly outcome: "in_doubt" }
      /**
       * It will never be accepted. `channel` is true if the whole channel is at fault (revoked credential, archived
       * channel) rather than this dispatch.
       */
      | { readonly outcome: "refused"; readonly channel: boolean }
    ));

/** `now` is in ms since the epoch. */
export interface SendOptions {
  readonly timeoutMs: number;
  readonly now: number;
  /** Called before each further request; false ends the sending. Default: all are made. */
  readonly goesOn?: () => boolean;
}

export interface Channel {
  readonly name: ChannelName;
  /** The network's name, e.g. `slack`. */
  readonly network: string;
  /** Identifies us to the network. When it changes, a suspended channel is tried again. Never shown. */
  readonly credential: Secret;
  /** How long after the first request the network recognises a repeat; absent if it never does. */
  readonly recognisesMs?: number;
  /** For a webhook: true if an event waits while an earlier one of its stream is pending. */
  readonly isInOrder?: boolean;
  /** For a webhook: true if an event is posted; absent if each is. Throws {@link FilterFailed}. */
  readonly filter?: (event: Recorded) => boolean;
  /**
   * Sends several clicks in one request, for a network that accepts them. Returns a result for each, in their order.
   * Never throws.
   */
  readonly batch?: {
    readonly max: number;
    send(clicks: readonly Click[], options: SendOptions): Promise<readonly DispatchResult[]>;
  };
  /** Makes exactly one attempt within `timeoutMs`. Never throws because of the network. */
  send(dispatch: Dispatch, options: SendOptions): Promise<DispatchResult>;
  /** Checks the credential, without sending anything if the network allows that (`doctor --online`). */
  check(timeoutMs: number): Promise<CredentialCheck>;
}

/** `detail` says what answered, or what to correct. */
export interface CredentialCheck {
  readonly ok: boolean;
  readonly detail: string;
}

export interface SocialUser {
  readonly id: string;
  readonly username: string;
  readonly name: string;
  /** Undefined if the network does not say. */
  readonly receivesOurDm: boolean | undefined;
  readonly protected: boolean | undefined;
}

/** The rate-limit window to respect after an answer: of exhausted ones the one that resets last, else the shortest. */
export interface RateWindow {
  readonly limit: number;
  readonly remaining: number;
  /**
   * Ms since the epoch of our clock. The difference to the network's clock (its `Date` header) is already taken out.
   */
  readonly resetAt: number;
}

/** The result of sending one direct message. */
export type SendDmResult = { readonly rate: RateWindow | undefined } & (
  | { readonly outcome: "sent"; readonly messageId: string }
  /** Certainly not delivered. The same message may be sent from `retryAt` (ms since the epoch) on. */
  | { readonly outcome: "rate_limited"; readonly retryAt: number }
  /**
   * `in_doubt`: it may have arrived; never send it again without reading the conversation. `unreachable`: no connection
   * came about, so it certainly did not arrive, and the recipient may be tried again.
   */
  | {
      /**
       * `recipient_closed`: refused for this recipient, by a code or words. `not_permitted`: refused without a reason;
       * many in a row are refused for the account. `rejected`: the network refused this message for its content.
       */
      readonly outcome: "recipient_closed" | "not_permitted" | "rejected" | "in_doubt" | "unreachable";
      readonly detail: string;
    }
  | { readonly outcome: "unauthorized" }
  /** The account as a whole may not send: the run ends with this reason. */
  | { readonly outcome: "stopped"; readonly reason: StopReason; readonly detail: string }
);

/** Why the network stops an account, as the end of the run records it. `app_not_enrolled` blames the app's access. */
export type StopReason =
  "credits_depleted" | "usage_capped" | "sender_restricted" | "missing_scope" | "app_not_enrolled";

/** A failed read. Its kind tells the run whether to wait, to refresh the token, or to end. */
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

/** A message of any of our conversations, including our own messages. */
export interface InboxMessage extends SentDm {
  /** Undefined if the network does not say. */
  readonly senderUsername: string | undefined;
  /** True if the conversation has several people, so that the message was not written to us alone. */
  readonly inGroup?: true;
}

/** The requested part of a long list. `limit` is the most entries, as near as the network allows. */
export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string;
}

/** `next` is the cursor of the following page; absent on the last one. */
export interface UserPage {
  readonly users: readonly SocialUser[];
  readonly next?: string;
}

/** A network's price for each, in millionths of a dollar: sums of whole numbers do not drift. */
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
  /** Looks up 100 users at most. Users that the network does not know, or whose names it cannot have, are absent. */
  usersByUsername(token: string, usernames: readonly string[]): Promise<readonly SocialUser[]>;
  usersById(token: string, ids: readonly string[]): Promise<readonly SocialUser[]>;
  /** Newest first, like the two below. */
  followers(token: string, userId: string, page: PageRequest): Promise<UserPage>;
  listMembers(token: string, listId: string, page: PageRequest): Promise<UserPage>;
  /**
   * Returns the authors of recent posts that match, each once a page; with `since`, only of posts newer than that one.
   * `newest` is the newest post of the page, `posts` how many were read.
   */
  searchAuthors(
    token: string,
    query: string,
    page: PageRequest & { readonly since?: string },
  ): Promise<UserPage & { readonly newest?: string; readonly posts: number }>;
  /** Makes exactly one POST. Never throws because of the network. */
  sendDm(token: string, recipientId: string, text: string): Promise<SendDmResult>;
  /**
   * Returns the newest messages of our conversation with one recipient, newest first, at most `limit`. Throws
   * `unavailable` if the answer is not certain, because an absent message counts as not delivered.
   */
  conversation(token: string, recipientId: string, limit: number): Promise<readonly SentDm[]>;
  /** Returns the newest messages of all our conversations, newest first. */
  inbox(
    token: string,
    page: PageRequest,
  ): Promise<{ readonly messages: readonly InboxMessage[]; readonly next?: string }>;
}
