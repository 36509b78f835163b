/**
 * The port to the outside: what the service asks of a network, and the only answers that it understands. Only a
 * network's own files know its URLs, bodies and error codes.
 */

import type { Recorded } from "../../events/event-types-and-codec.ts";
import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import type { VisitorIds } from "../../events/clicks-links-conversions.ts";
import type { Secret } from "../platform/secret.ts";
import { ServiceError } from "../platform/service-error.ts";

/**
 * A delivery that a channel is asked to make, such as a click or a message. The channel words it for its own network.
 */
export type Dispatch = {
  /**
   * Id of the dispatch; for a click, that of its event; for a conversion, its external id if it has one. Networks that
   * recognise a repeat recognise it by this id.
   */
  readonly id: string;
  /** Id of the retry that requested the dispatch; absent if no retry did. */
  readonly retryId?: string;
  /** When the dispatch was recorded, in ISO 8601; for a digest, when its last click was. */
  readonly time: string;
} & (
  | {
      readonly kind: "click";
      readonly event: string;
      readonly domain: string;
      readonly shortCode: string;
      /** The click's URL as it was posted. */
      readonly originalUrl: string;
      /** The click's URL as a browser requests it. */
      readonly normalizedUrl: string;
      readonly ip: string | undefined;
      readonly userAgent: string | undefined;
      readonly ids?: VisitorIds;
      readonly bot: boolean;
    }
  | {
      readonly kind: "conversion";
      readonly name: string;
      /** Value as a decimal, such as `24.90`; absent if the conversion has none, as is its currency. */
      readonly value: string | undefined;
      readonly currency: string | undefined;
      /** The visitor's click that the conversion is attributed to. */
      readonly click: Click;
    }
  | { readonly kind: "notification"; readonly message: string; readonly service: string; readonly level: string }
  | { readonly kind: "message"; readonly text: string }
  | {
      /** Digest of many clicks in one message, if a channel cannot keep up with one message each. */
      readonly kind: "digest";
      readonly clicks: number;
      /** Number of the digest's clicks that bots made. */
      readonly bots: number;
      /** Links of the digest, the most clicked first. */
      readonly links: readonly DigestLink[];
    }
  | { readonly kind: "test" }
  /** Dispatch of an event of the log, for a program that receives webhooks. */
  | { readonly kind: "event"; readonly event: Recorded }
);

export interface DigestLink {
  readonly domain: string;
  readonly shortCode: string;
  readonly clicks: number;
  readonly bots: number;
  /** Time of the link's first click in the digest, ISO 8601. */
  readonly first: string;
  /** Time of the link's last click in the digest, ISO 8601. */
  readonly last: string;
}

export type Click = Extract<Dispatch, { kind: "click" }>;
export type Conversion = Extract<Dispatch, { kind: "conversion" }>;

/** The result of a dispatch. `detail` says what happened, without a credential or personal data. */
export type DispatchResult =
  | {
      /** The network accepted the dispatch. */
      readonly outcome: "delivered";
      readonly status: number;
      readonly networkId?: string;
      /** Pause before the next request, in ms, as the network's report of our use suggests. */
      readonly pauseMs?: number;
    }
  /** The network's own rules forbid sending the dispatch. */
  | { readonly outcome: "skipped"; readonly reason: "no_user_agent" | "no_ip_address" | "too_old" }
  | ({ readonly detail: string; readonly status?: number } & (
      | {
          /**
           * The dispatch may be sent again: it was certainly not delivered, or the network recognises the repeat
           * (`mayHaveArrived`).
           */
          readonly outcome: "retryable";
          readonly retryAfterMs?: number;
          /**
           * True if the dispatch may have arrived. A repeat by the same id creates no duplicate for {@link
           * Channel.recognisesMs}.
           */
          readonly mayHaveArrived?: true;
          /** True if the dispatch's batch ended early: no request was made for it, so this is no attempt. */
          readonly unasked?: true;
        }
      /** The dispatch may have arrived, and a repeat could double it. */
      | { readonly outcome: "in_doubt" }
      /**
       * The dispatch will never be accepted. `channel` is true if the whole channel is at fault (revoked credential,
       * archived channel) rather than this dispatch.
       */
      | { readonly outcome: "refused"; readonly channel: boolean }
    ));

/** Options of sending a dispatch; `now` is in ms since the epoch. */
export interface SendOptions {
  readonly timeoutMs: number;
  readonly now: number;
  /**
   * The channel calls this before each further request; if it returns false, the channel makes none. Default: it makes
   * all requests.
   */
  readonly goesOn?: () => boolean;
}

export interface Channel {
  readonly name: ChannelName;
  /** Name of the network behind the channel, such as `slack`. */
  readonly network: string;
  /** Credential that identifies us to the network. When it changes, a suspended channel is tried again. Never shown. */
  readonly credential: Secret;
  /** How long after the first request the network recognises a repeat, in ms; absent if it never does. */
  readonly recognisesMs?: number;
  /** For a webhook: true if an event waits while an earlier one of its stream is pending. */
  readonly isInOrder?: boolean;
  /**
   * Returns true if the webhook posts the event. Absent if it posts every event, and for other channels. Throws {@link
   * FilterFailed}.
   */
  readonly filter?: (event: Recorded) => boolean;
  /**
   * Sends several clicks and conversions in one request, for a network that accepts them. Returns a result for each, in
   * their order. Never throws.
   */
  readonly batch?: {
    readonly max: number;
    send(dispatches: readonly (Click | Conversion)[], options: SendOptions): Promise<readonly DispatchResult[]>;
  };
  /** Makes exactly one attempt to send the dispatch, within `timeoutMs`. Never throws because of the network. */
  send(dispatch: Dispatch, options: SendOptions): Promise<DispatchResult>;
  /** Checks the channel's credential, without sending anything if the network allows that (`doctor --online`). */
  check(timeoutMs: number): Promise<CredentialCheck>;
}

/** The result of checking a channel's credential. `detail` says what answered, or what to correct. */
export interface CredentialCheck {
  readonly ok: boolean;
  readonly detail: string;
}

/** A user of the social network, by id and names. */
export interface NamedUser {
  readonly id: string;
  readonly username: string;
  readonly name: string;
}

export interface SocialUser extends NamedUser {
  /** True if the user accepts direct messages from our account. Undefined if the network does not say. */
  readonly receivesOurDm: boolean | undefined;
  readonly protected: boolean | undefined;
}

/**
 * The rate-limit window to respect after an answer of the network: of exhausted windows the one that resets last, else
 * the shortest.
 */
export interface RateWindow {
  readonly limit: number;
  readonly remaining: number;
  /**
   * When the window resets, in ms since the epoch by our clock. The difference to the network's clock (its `Date`
   * header) is already taken out.
   */
  readonly resetAt: number;
}

/** The result of sending one direct message. */
export type SendDmResult = { readonly rate: RateWindow | undefined } & (
  | { readonly outcome: "sent"; readonly messageId: string }
  /** The direct message was certainly not delivered. It may be sent again from `retryAt` (ms since the epoch) on. */
  | { readonly outcome: "rate_limited"; readonly retryAt: number }
  /**
   * Further outcomes of a direct message. `in_doubt`: it may have arrived; it is never sent again before the
   * conversation was read. `unreachable`: there was no connection, so it certainly did not arrive, and may be sent
   * again.
   */
  | {
      /**
       * Refusals of a direct message: `recipient_closed` for this recipient, by a code or words; `not_permitted`
       * without a reason, so that many in a row are refused for the account; `rejected` for the message's content.
       */
      readonly outcome: "recipient_closed" | "not_permitted" | "rejected" | "in_doubt" | "unreachable";
      readonly detail: string;
    }
  | { readonly outcome: "unauthorized" }
  /** The network stops the account as a whole, so the run ends with this reason. */
  | { readonly outcome: "stopped"; readonly reason: StopReason; readonly detail: string }
);

/**
 * Reasons why the network stops the account, as the end of the run records them. `app_not_enrolled`: the developer app
 * lacks access to the endpoint.
 */
export type StopReason =
  "credits_depleted" | "usage_capped" | "sender_restricted" | "missing_scope" | "app_not_enrolled";

/**
 * Error of a failed read from the social network. Its kind tells the run whether to wait, to refresh the token, or to
 * end.
 */
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
  /** Text of the message as its author wrote it: shortened links are expanded back. */
  readonly text: string;
  readonly createdAt: number;
}

/** A message of any conversation of our account, including our own messages. */
export interface InboxMessage extends SentDm {
  /** User name of the message's author. Undefined if the network does not say. */
  readonly senderUsername: string | undefined;
  /** True if the message's conversation has several people, so that it was not written to us alone. */
  readonly inGroup?: true;
}

/**
 * A notification that the network sends at the time of a change, such as a new message. It is only a hint: what counts
 * is a later reading of the messages.
 */
export type Signal =
  | { readonly kind: "message"; readonly message: InboxMessage }
  /** Signal that `readerId` has read our messages, up to `lastReadId` or, without it, to `at` (ms since the epoch). */
  | { readonly kind: "read"; readonly readerId: string; readonly at: number; readonly lastReadId?: string }
  /**
   * Signal that an encrypted message of X Chat has arrived. The signal lacks the words, because only the members of the
   * conversation can decrypt them.
   */
  | {
      readonly kind: "chat";
      readonly id: string;
      readonly senderId: string;
      readonly createdAt: number;
      readonly inGroup: boolean;
    }
  /** Signal that the user has revoked the authorization of our app. */
  | { readonly kind: "revoked"; readonly userId: string }
  /**
   * Signal that a message has arrived in a form that this version does not know, so that it must be read from the
   * network.
   */
  | { readonly kind: "unclear" };

/**
 * The network's stream of {@link Signal}s: its notifications of received messages, read receipts and revoked
 * authorizations.
 */
export interface SignalStream {
  /** Checks that the network accepts our app's own token. Throws SocialError. */
  check(): Promise<void>;
  /**
   * Subscribes to the signals of the user whose token this is. Returns the network's words for each type that it
   * refuses. Throws SocialError.
   */
  subscribe(token: string, userId: string): Promise<readonly string[]>;
  /**
   * Opens the stream of signals for this user, until `signal` aborts. Throws a SocialError for a refusal, and a
   * NetworkFault if the network does not answer or the open stream breaks.
   */
  open(userId: string, signal: AbortSignal): Promise<AsyncIterable<Signal>>;
}

/** The requested page of a long list. `limit`: maximum number of entries, as near as the network allows. */
export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string;
}

/** A page of users. `next` is the cursor of the following page; absent on the last one. */
export interface UserPage {
  readonly users: readonly SocialUser[];
  readonly next?: string;
}

/** A network's prices for each thing sent or read, in millionths of a dollar: sums of whole numbers do not drift. */
export interface Prices {
  readonly send: number;
  readonly user: number;
  /** Price of reading a follower of our own account, who may cost less than other users. */
  readonly follower: number;
  readonly post: number;
  readonly message: number;
}

/** The social network, with the access token given to each call. Its reads throw {@link SocialError}. */
export interface SocialNetwork {
  readonly network: string;
  /** Returns the user that the token belongs to. */
  me(token: string): Promise<NamedUser>;
  /** Looks up 100 users at most. Users that the network does not know, or whose names it cannot have, are absent. */
  usersByUsername(token: string, usernames: readonly string[]): Promise<readonly SocialUser[]>;
  usersById(token: string, ids: readonly string[]): Promise<readonly SocialUser[]>;
  /** Returns a page of the user's followers, newest first. */
  followers(token: string, userId: string, page: PageRequest): Promise<UserPage>;
  /** Returns a page of the list's members, newest first. */
  listMembers(token: string, listId: string, page: PageRequest): Promise<UserPage>;
  /**
   * Returns the authors of recent posts that match the query, newest first, each once a page; with `since`, only of
   * posts newer than that one. `newest`: the newest post of the page; `posts`: the number of posts that were read.
   */
  searchAuthors(
    token: string,
    query: string,
    page: PageRequest & { readonly since?: string },
  ): Promise<UserPage & { readonly newest?: string; readonly posts: number }>;
  /** Sends a direct message with exactly one POST. Never throws because of the network. */
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
