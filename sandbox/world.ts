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
  /** X's limits where they are not to be the documented ones. */
  readonly x?: Partial<XLimits>;
  readonly xApp?: XApp;
  /** Undefined: the sandbox knows of no service. */
  readonly instances?: Instances | undefined;
}

/** Everything that the sandbox remembers: the networks as they are now. */
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
 * Takes every obstacle out of the way: all faults, the waits that they make, and limits, which are as they were at the
 * start, none of it used up. What arrived stays, and so does who may write to which person.
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

/** The chat and messaging networks, and what the limit of each counts. */
export function channelsOf(world: World) {
  return [
    { network: "slack", title: "Slack", counts: "messages in 5 s", state: world.slack },
    { network: "discord", title: "Discord", counts: "messages in 2 s", state: world.discord },
    { network: "google_chat", title: "Google Chat", counts: "messages in a minute", state: world.googleChat },
    { network: "teams", title: "Teams", counts: "requests in a second", state: world.teams },
    // A group takes four times as many in a minute.
    { network: "telegram", title: "Telegram", counts: "messages in 5 s", state: world.telegram },
    { network: "line", title: "LINE", counts: "requests in a second", state: world.line },
    { network: "whatsapp", title: "WhatsApp", counts: "messages in a second", state: world.whatsapp },
  ] as const;
}

/** The world as its own pages control it. */
export interface ControlledWorld extends World {
  /** The origin, without a slash at its end. */
  readonly url: string;
  /** Forgets everything, as if just started; only the clock goes on. */
  reset(): void;
  /** Switches off all that stands between a service and the networks; what arrived stays. */
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
