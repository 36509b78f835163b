import type { ClickChannel } from "../../events/channel-and-lane-names.ts";
import type { Network } from "../../sandbox/network-origins-and-refusals.ts";
import type { Recorded } from "../../sandbox/record-received.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { credentialsOf, settingsOf, urlsOf, type Choice } from "../../sandbox/service-settings.ts";

/** Network in the fault tests of delivery. To test a new network, add a row. */
export interface NetworkRow {
  readonly network: Network;
  readonly channel: ClickChannel;
  /** Settings that make this network the provider of its channel. */
  readonly choice: Choice;
  /**
   * True if the network recognises a repeated message by its id, so that a message counts once, however often it
   * arrives.
   */
  readonly deduplicates?: true;
  /**
   * True if a message at the network contains the id of its event instead of the name that the test gave the click or
   * text.
   */
  readonly bearsIds?: true;
  /**
   * True if the status of the network's answer alone shows that the message was accepted. The body is not needed for
   * that.
   */
  readonly tellsByStatus?: true;
  state(sandbox: Sandbox): State;
  /** Change of the sandbox's state to another credential, so that the network no longer accepts ours. */
  readonly otherCredential: Readonly<Record<string, string>>;
}

interface State {
  readonly messages?: Recorded<unknown>;
  readonly events?: Recorded<unknown>;
}

export const NETWORK_ROWS: readonly NetworkRow[] = [
  {
    network: "meta",
    channel: "ads",
    choice: {},
    deduplicates: true,
    bearsIds: true,
    state: ({ meta }) => meta,
    otherCredential: { accessToken: "EAAAnotherMetaToken0123456789" },
  },
  {
    network: "slack",
    channel: "chat",
    choice: { chat: "slack" },
    state: ({ slack }) => slack,
    otherCredential: { path: "/services/T0SANDBOX/B0SANDBOX/anotherWebhookSecret" },
  },
  {
    network: "discord",
    channel: "chat",
    choice: { chat: "discord" },
    state: ({ discord }) => discord,
    otherCredential: { webhookToken: "anotherWebhookToken_0123456789-abcdefghijklmnopqrstuvwxyzABCDEFGHIJK" },
  },
  {
    network: "google_chat",
    channel: "chat",
    choice: { chat: "google_chat" },
    state: ({ googleChat }) => googleChat,
    otherCredential: { token: "anotherToken_0123456789-abcdefghijk=" },
  },
  {
    network: "teams",
    channel: "chat",
    choice: { chat: "teams" },
    tellsByStatus: true,
    state: ({ teams }) => teams,
    otherCredential: { signature: "anotherSignature0123456789-abcdefghijklmnop" },
  },
  {
    network: "telegram",
    channel: "messaging",
    choice: { messaging: "telegram" },
    state: ({ telegram }) => telegram,
    otherCredential: { botToken: "987654321:AAAnotherTelegramToken_0123456789abc" },
  },
  {
    network: "line",
    channel: "messaging",
    choice: { messaging: "line" },
    deduplicates: true,
    state: ({ line }) => line,
    otherCredential: { accessToken: "AnotherLineChannelAccessToken0123456789" },
  },
  {
    network: "whatsapp",
    channel: "messaging",
    choice: { messaging: "whatsapp" },
    state: ({ whatsapp }) => whatsapp,
    otherCredential: { accessToken: "EAAAnotherWhatsappToken0123456789" },
  },
];

/** Networks at which a repeated message arrives twice. */
export const DOUBLING_ROWS = NETWORK_ROWS.filter(({ deduplicates }) => deduplicates !== true);

export function rowOf(network: Network): NetworkRow {
  const row = NETWORK_ROWS.find((one) => one.network === network);
  if (row === undefined) throw new Error(`no row tells of ${network}`);
  return row;
}

/**
 * Returns a network of another channel. On that channel, the service tells the operator that `channel` was suspended.
 */
export function otherThan(channel: ClickChannel): NetworkRow {
  const other = NETWORK_ROWS.find((row) => row.channel === (channel === "chat" ? "messaging" : "chat"));
  if (other === undefined) throw new Error("no other channel takes texts");
  return other;
}

/** Patterns of the names of the settings that configure each channel. */
const SETTINGS: Readonly<Record<ClickChannel, RegExp>> = {
  ads: /^META_/,
  "ads-openai": /^OPENAI_/,
  "ads-snap": /^SNAP_/,
  chat: /^CHAT_/,
  messaging: /^(?:MESSAGING|TELEGRAM|LINE|WHATSAPP)_/,
};

/** True if the setting configures a channel. */
export function isOfChannel(name: string): boolean {
  return Object.values(SETTINGS).some((pattern) => pattern.test(name));
}

/** Settings of the service for this network, with the network's current credential. */
export function settingsFor({ channel, choice }: NetworkRow, sandbox: Sandbox): Record<string, string> {
  const place = { urls: urlsOf(sandbox.url, sandbox), credentials: credentialsOf(sandbox) };
  const all = Object.entries(settingsOf(place, choice));
  return Object.fromEntries(all.filter(([name]) => SETTINGS[channel].test(name)));
}

/** Settings of the service for this network and for another channel. */
export function settingsWith(row: NetworkRow, sandbox: Sandbox): Record<string, string> {
  return { ...settingsFor(otherThan(row.channel), sandbox), ...settingsFor(row, sandbox) };
}

/** Changes the credential that the network accepts, so that it rejects the service's credential. */
export function changeCredential({ state, otherCredential }: NetworkRow, sandbox: Sandbox): void {
  Object.assign(state(sandbox), otherCredential);
}

const PLENTY = 100_000;

/**
 * Raises the rate limits of the simulated networks so far that none is reached. A fault test injects one fault, and a
 * 429 would be another.
 */
export function unlimit(sandbox: Sandbox): void {
  for (const { state } of NETWORK_ROWS) {
    const limits = Object.keys(state(sandbox)).filter((name) => /^(?:limit|pairLimit)$/.test(name));
    Object.assign(state(sandbox), Object.fromEntries(limits.map((name) => [name, PLENTY])));
  }
}

/** Returns the sandbox's record of the messages or events that arrived at the network. */
export function arrivalsAt({ state }: NetworkRow, sandbox: Sandbox): Recorded<unknown> {
  const { messages, events } = state(sandbox);
  const arrivals = messages ?? events;
  if (arrivals === undefined) throw new Error("the network keeps nothing");
  return arrivals;
}

/**
 * Counts from now on how often the network receives each named click or text, even if the sandbox's record drops its
 * oldest entries.
 */
export function countArrivals(row: NetworkRow, sandbox: Sandbox): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const arrivals = arrivalsAt(row, sandbox);
  const add = arrivals.add.bind(arrivals);
  arrivals.add = (item) => {
    const name = nameOf(item);
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
    add(item);
  };
  return counts;
}

/**
 * Pattern of the name that a test gives to a click (in its short code) or to a direct send (in its text). By this name
 * the test finds it in the sandbox's record of what arrived.
 */
const NAME = /\b(?:click|direct)-\d+\b/;

/** Returns the name in a received message or event; undefined if it is neither a click nor a direct send of a test. */
export function nameOf(arrival: unknown): string | undefined {
  const { event_id, text = "" } = arrival as { readonly event_id?: string; readonly text?: string };
  return event_id ?? NAME.exec(text)?.[0];
}
