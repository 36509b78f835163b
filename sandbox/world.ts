import type { RequestHandler } from "msw";
import type { SandboxClock } from "./clock.ts";
import { createDiscordState, discordHandlers } from "./discord.ts";
import { createFaultBoard } from "./faults.ts";
import { createGoogleChatState, googleChatHandlers } from "./google-chat.ts";
import type { Instances } from "./instances.ts";
import { createLineState, lineHandlers } from "./line.ts";
import { createMetaState, metaHandlers } from "./meta.ts";
import type { Origin } from "./network.ts";
import { createTally } from "./recorded.ts";
import { createSlackState, slackHandlers } from "./slack.ts";
import { createTeamsState, teamsHandlers } from "./teams.ts";
import { createTelegramState, telegramHandlers } from "./telegram.ts";
import { createWhatsappState, whatsappHandlers } from "./whatsapp.ts";
import { consentHandlers } from "./x/consent.ts";
import { conversationHandlers } from "./x/conversations.ts";
import { messageHandlers } from "./x/messages.ts";
import { searchHandlers } from "./x/search.ts";
import { createXState, type XApp, type XLimits } from "./x/state.ts";
import { tokenHandlers } from "./x/tokens.ts";
import { userHandlers } from "./x/users.ts";

export interface WorldOptions {
  /** Limits of X that differ from the documented ones. */
  readonly x?: Partial<XLimits>;
  readonly xApp?: XApp;
  /** Undefined if the sandbox knows no services. */
  readonly instances?: Instances | undefined;
}

/** The whole memory of the sandbox: the present state of the networks. */
export function createWorld(clock: SandboxClock, { x = {}, xApp = {}, instances }: WorldOptions) {
  return {
    clock,
    instances,
    faults: createFaultBoard(),
    tally: createTally(),
    x: createXState(clock, x, xApp),
    meta: createMetaState(clock),
    slack: createSlackState(clock),
    discord: createDiscordState(clock),
    googleChat: createGoogleChatState(clock),
    teams: createTeamsState(clock),
    telegram: createTelegramState(clock),
    line: createLineState(clock),
    whatsapp: createWhatsappState(clock),
  };
}

export type World = Readonly<ReturnType<typeof createWorld>>;

/**
 * Removes all obstacles: ends all faults and their waits, and resets limits, with none of them used. Keeps arrivals and
 * the permissions to write to people.
 */
export function removeObstacles(world: World, options: WorldOptions): void {
  world.faults.clear();
  world.faults.release();
  const { x, slack, discord, googleChat, teams, telegram, line, whatsapp } = createWorld(world.clock, options);
  Object.assign(world.x, { limits: x.limits, windows: x.windows });
  Object.assign(world.slack, { limit: slack.limit, bucket: slack.bucket });
  Object.assign(world.discord, { limit: discord.limit, windows: discord.windows });
  Object.assign(world.googleChat, { limit: googleChat.limit, bucket: googleChat.bucket });
  Object.assign(world.teams, { limit: teams.limit, bucket: teams.bucket });
  const { chatBucket, groupBucket } = telegram;
  Object.assign(world.telegram, { limit: telegram.limit, chatBucket, groupBucket });
  Object.assign(world.line, { limit: line.limit, bucket: line.bucket, quota: line.quota });
  const { numberBucket, pairBucket, pairLimit, wroteAt } = whatsapp;
  Object.assign(world.whatsapp, { limit: whatsapp.limit, numberBucket, pairBucket, pairLimit, wroteAt });
}

/** The chat and messaging networks, with the unit of each limit. */
export function channelsOf(world: World) {
  return [
    { network: "slack", title: "Slack", counts: "messages in 5 s", state: world.slack },
    { network: "discord", title: "Discord", counts: "messages in 2 s", state: world.discord },
    { network: "google_chat", title: "Google Chat", counts: "messages in a minute", state: world.googleChat },
    { network: "teams", title: "Teams", counts: "requests in a second", state: world.teams },
    // A group accepts four times as many per minute.
    { network: "telegram", title: "Telegram", counts: "messages in 5 s", state: world.telegram },
    { network: "line", title: "LINE", counts: "requests in a second", state: world.line },
    { network: "whatsapp", title: "WhatsApp", counts: "messages in a second", state: world.whatsapp },
  ] as const;
}

/** The world with the controls of its pages. */
export interface ControlledWorld extends World {
  /** The origin, without a trailing slash. */
  readonly url: string;
  /** Resets everything as after a start, except the clock. */
  reset(): void;
  /** Removes all obstacles between a service and the networks; keeps arrivals. */
  allOff(): void;
}

export type Handlers = Readonly<Record<Origin, RequestHandler[]>>;

export function handlersOf(world: World): Handlers {
  const { x } = world;
  return {
    x: [
      ...tokenHandlers(x),
      ...userHandlers(x),
      ...searchHandlers(x),
      ...messageHandlers(x),
      ...conversationHandlers(x),
    ],
    "x-web": consentHandlers(x),
    meta: metaHandlers(world.meta),
    slack: slackHandlers(world.slack),
    discord: discordHandlers(world.discord),
    google_chat: googleChatHandlers(world.googleChat),
    teams: teamsHandlers(world.teams),
    telegram: telegramHandlers(world.telegram),
    line: lineHandlers(world.line),
    whatsapp: whatsappHandlers(world.whatsapp),
  };
}
