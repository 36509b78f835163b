import type { Recipient, SkipReason } from "../events/outreach.ts";
import { type Consent, NO_CONSENT } from "./consent.ts";

/**
 * Status of outreach to a contact. Only `open` contacts get a message; all others are not tried (again) automatically.
 */
export type ContactStatus = "open" | "attempted" | "in_doubt" | "sent" | "failed";

/** Links of one message that its recipient alone got. */
interface OwnLinks {
  readonly codes: readonly string[];
  /** Time at which the message's outcome was recorded, sent or in doubt, ISO 8601; absent until then. */
  readonly recorded?: string;
}

/** Outreach to a contact in one campaign. */
export interface CampaignOutreach {
  status: ContactStatus;
  /** True if the recipient wrote to us after the campaign's message. */
  replied: boolean;
  /** Id of the campaign's newest message at the network; absent if it is unknown. */
  message_id?: string;
  /**
   * Time up to which the recipient has read our messages, this one among them, ISO 8601. Absent if the network reported
   * no read.
   */
  seen_at?: string;
  /** Variant of the newest message that was decided, regardless of its outcome: `A`, `B` … */
  variant?: string;
  /** Time at which the newest message that may have reached the recipient was decided, ISO 8601. */
  attempted_at?: string;
  /**
   * The recipient's own links in the newest message. Absent if the message has none, or if it failed. The object is
   * replaced, never changed.
   */
  own_links?: OwnLinks;
  /** Campaign of the first message in the chain of follow-ups that the message belongs to; absent if it follows none. */
  follows?: string;
  /**
   * True if runs try this recipient once more, even if the list that named the recipient is no longer read: an operator
   * allowed it, or the failure was not due to the recipient.
   */
  again: boolean;
  /** Skip reasons that the log already holds for the recipient. Each reason is recorded only once. */
  skipped: SkipReason[];
}

/**
 * One recipient as the log knows them: imported by an operator, met by a run, or both. The members of {@link
 * CampaignOutreach} are those of the campaign of the newest attempt.
 */
export interface Contact extends Consent, CampaignOutreach {
  /** Campaign of the newest attempt; absent if it is `default`. */
  campaign?: string;
  /** Outreach in the contact's other campaigns, by their names; absent if there is none. Never changed in place. */
  campaigns?: Readonly<Record<string, CampaignOutreach>>;
  id?: string;
  username?: string;
  name?: string;
  /** IANA name of the recipient's time zone. */
  timezone?: string;
  /** Codes of the personal links in messages to the recipient. */
  personal_links: string[];
  /** Codes of personal links that the recipient clicked while they granted tracking; absent if there are none. */
  clicked?: string[];
  fields: Record<string, string>;
  /** True if the operator imported the recipient, who is then part of the `list` source. */
  listed: boolean;
  suppressed: boolean;
  /** True if a reply of the recipient may ask us to stop, and no operator has decided that yet. */
  held: boolean;
  /** Time of the newest reply that put the recipient on hold, ISO 8601; absent if none did. */
  held_at?: string;
  /** True if a message from the recipient is known. */
  received: boolean;
  /** Id of the newest message from the recipient that an event records; absent if none does. */
  received_id?: string;
  /** True if the reply that put the recipient on hold came in X Chat; absent otherwise. */
  held_unread?: true;
  /**
   * Number of our messages that the network had accepted when it last refused a message to this recipient. Absent if it
   * never refused one.
   */
  refused_after?: number;
  /** Positions of all events about the recipient except reads of their data, in the order of the log. */
  positions: number[];
  /**
   * Positions of the events that record reads of the recipient's data, in the order of the log; absent if there are
   * none.
   */
  reads?: number[];
  /**
   * Position of the event that created this entry. Present only if the entry has absorbed another one with earlier
   * events, so that `positions` begins with those.
   */
  met?: number;
  /**
   * Values of this entry that events have replaced, in the order of the log; absent if there are none. {@link
   * rewindContacts} puts them back.
   */
  replaced?: Replaced[];
}

/**
 * Former values of a contact that one event has replaced. `rewindContacts` puts them back, to show the contact at an
 * earlier moment.
 */
export interface Replaced {
  /** Position of the event that replaced the values in `was`. */
  readonly at: number;
  /** Former values of the members that the event changed; null if a member was absent. */
  readonly was: { readonly [Member in keyof Contact]?: Contact[Member] | null };
  /** Other entry, with its key in `people`, that the event showed to be the same recipient. */
  readonly absorbed?: readonly [key: string, entry: Contact];
}

/** All known recipients, found by id and by handle. */
export interface Contacts {
  /** Contacts by their keys (id, or `@` and handle), in the order in which they were met. */
  people: Map<string, Contact>;
  /**
   * Keys of contacts by their network id, for contacts that were first known by handle only, so that their keys are
   * handles. The network id became known later.
   */
  ids: Map<string, string>;
  /** Keys of the contacts that are known to hold a handle, by the handle in lower case. */
  handles: Map<string, string>;
  /** Keys of the last former holders of a handle, by the handle in lower case: handles are changed and taken over. */
  former: Map<string, string>;
  /** Number of imported contacts that have a template field, by the field's name. */
  fields: Map<string, number>;
  /** Number of contacts that are on hold. */
  held: number;
  /**
   * Position of the first event with a keyed hash of a suppressed recipient, by the hash. Hashes outlast an erasure.
   */
  hashes: Map<string, number>;
  /** Network ids of recipients, by the code of a personal link of theirs. */
  links: Map<string, string>;
  /**
   * For each pair of entries that turned out to be one recipient: `since`, the position from which both existed, and
   * `until`, the position of the event that merged them.
   */
  merged: { since: number; until: number }[];
  /** Positions of the events by which the network accepted a message, in the order of the log. */
  taken: number[];
  /** Ids of the recipients that the network refused since it accepted the last message, each once. */
  refused: string[];
  /**
   * Values from before an event changed `refused` or an entry of `former`, in the order of the log; null if the entry
   * was absent. A past state is restored with them.
   */
  replaced: {
    readonly at: number;
    readonly refused?: string[];
    readonly former?: readonly [handle: string, key: string | null];
  }[];
  /**
   * The contacts that keep former values, with the positions of the events that changed them, in the order of the log.
   * The list has blocks, so that the oldest changes can be dropped a block at a time.
   */
  changed: {
    /** Full blocks by the position of their first change; at most {@link BLOCKS_MAX}. */
    readonly full: Map<number, Changes>;
    /** Block that is filled until it has {@link BLOCK_CHANGES} changes. */
    open: Changes;
  };
  /** First position to which the state can be rewound; changes before it were dropped. */
  rewinds_to: number;
}

/**
 * Changes of contacts, as two lists of equal length: positions of events, and the keys of the contacts that they
 * changed.
 */
interface Changes {
  readonly at: number[];
  readonly keys: string[];
}

export function newContact(): Contact {
  return {
    basis: "none",
    consent: null,
    tracking: NO_CONSENT.tracking,
    inbound: false,
    personal_links: [],
    fields: {},
    listed: false,
    status: "open",
    suppressed: false,
    held: false,
    received: false,
    replied: false,
    again: false,
    skipped: [],
    positions: [],
  };
}

/** Returns a recipient that has only the known members. */
export function toRecipient({
  id,
  username,
}: {
  readonly id?: string | undefined;
  readonly username?: string | undefined;
}): Recipient {
  return { ...(id === undefined ? {} : { id }), ...(username === undefined ? {} : { username }) };
}

/** Returns the positions of all events about a contact, including reads, in the order of the log. */
export function positionsAbout({ positions, reads }: Contact): readonly number[] {
  return reads === undefined ? positions : inAscendingOrder([...positions, ...reads]);
}

export function inAscendingOrder(positions: readonly number[]): number[] {
  return positions.toSorted((before, after) => before - after);
}

/** Returns the later of two times, ISO 8601 in UTC. */
export function later(one: string | undefined, other: string): string {
  return one !== undefined && one > other ? one : other;
}

/**
 * Returns how many contacts existed at a position. Each contact counts from its first event on. Entries that were
 * merged later count as two until the event that merged them.
 */
export function countPeopleAt({ people, merged }: Contacts, position: number): number {
  let count = merged.filter(({ since, until }) => since <= position && position < until).length;
  for (const { positions } of people.values()) if ((positions[0] ?? Infinity) <= position) count++;
  return count;
}

/**
 * True if the network has accepted messages to others since it refused this recipient. A further refusal is then about
 * this recipient, not about our account.
 */
export function isOwnRefusal({ taken }: Contacts, { refused_after }: Contact): boolean {
  return refused_after !== undefined && refused_after < taken.length;
}
