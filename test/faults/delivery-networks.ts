import type { ClickChannel } from "../../events/channel.ts";
import type { Network } from "../../sandbox/network.ts";
import type { Recorded } from "../../sandbox/recorded.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { credentialsOf, settingsOf, urlsOf, type Choice } from "../../sandbox/settings.ts";

/** A network as the fault matrix of delivery knows it. One more network is one more row. */
export interface NetworkRow {
  readonly network: Network;
  readonly channel: ClickChannel;
  /** Makes it the one of its channel. */
  readonly choice: Choice;
  /** Known to the network by its id, a message counts once, however often it comes. */
  readonly deduplicates?: true;
  /** What arrives bears the id of its event rather than the name that a click or a text was given. */
  readonly bearsIds?: true;
  /** The status alone tells that it was taken, whatever the body. */
  readonly tellsByStatus?: true;
  state(sandbox: Sandbox): State;
  /** The part of its state that it knows us by, with another value. */
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

/** Those whose messages a repeat doubles. */
export const DOUBLING_ROWS = NETWORK_ROWS.filter(({ deduplicates }) => deduplicates !== true);

export function rowOf(network: Network): NetworkRow {
  const row = NETWORK_ROWS.find((one) => one.network === network);
  if (row === undefined) throw new Error(`no row tells of ${network}`);
  return row;
}

/** Where a stop of that channel is told to the operator. */
export function otherThan(channel: ClickChannel): NetworkRow {
  const other = NETWORK_ROWS.find((row) => row.channel === (channel === "chat" ? "messaging" : "chat"));
  if (other === undefined) throw new Error("no other channel takes texts");
  return other;
}

/** The names of what configures each channel. */
const SETTINGS: Readonly<Record<ClickChannel, RegExp>> = {
  ads: /^META_/,
  chat: /^CHAT_/,
  messaging: /^(?:MESSAGING|TELEGRAM|LINE|WHATSAPP)_/,
};

/** Whether a setting is of any channel. */
export function isOfChannel(name: string): boolean {
  return Object.values(SETTINGS).some((pattern) => pattern.test(name));
}

/** What configures the service for this network, with the credential that it takes at the moment. */
export function settingsFor({ channel, choice }: NetworkRow, sandbox: Sandbox): Record<string, string> {
  const place = { urls: urlsOf(sandbox.url, sandbox), credentials: credentialsOf(sandbox) };
  const all = Object.entries(settingsOf(place, choice));
  return Object.fromEntries(all.filter(([name]) => SETTINGS[channel].test(name)));
}

/** The same, and another channel beside it. */
export function settingsWith(row: NetworkRow, sandbox: Sandbox): Record<string, string> {
  return { ...settingsFor(otherThan(row.channel), sandbox), ...settingsFor(row, sandbox) };
}

/** From now on the network takes another credential only. */
export function changeCredential({ state, otherCredential }: NetworkRow, sandbox: Sandbox): void {
  Object.assign(state(sandbox), otherCredential);
}

const PLENTY = 100_000;

/** Takes the networks' own limits away: they are another fault than the one that is tried. */
export function unlimit(sandbox: Sandbox): void {
  for (const { state } of NETWORK_ROWS) {
    const limits = Object.keys(state(sandbox)).filter((name) => /^(?:limit|pairLimit)$/.test(name));
    Object.assign(state(sandbox), Object.fromEntries(limits.map((name) => [name, PLENTY])));
  }
}

/** What counts at the network. */
export function arrivalsAt({ state }: NetworkRow, sandbox: Sandbox): Recorded<unknown> {
  const { messages, events } = state(sandbox);
  const arrivals = messages ?? events;
  if (arrivals === undefined) throw new Error("the network keeps nothing");
  return arrivals;
}

/** Counts from now on how often each name comes, however much the network keeps. */
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

/** Stands in the short code of a click, and in the text of a direct send, so that it is found in what arrived. */
const NAME = /\b(?:click|direct)-\d+\b/;

/** What an arrival tells of; undefined: of neither click nor direct send. */
export function nameOf(arrival: unknown): string | undefined {
  const { event_id, text = "" } = arrival as { readonly event_id?: string; readonly text?: string };
  return event_id ?? NAME.exec(text)?.[0];
}
