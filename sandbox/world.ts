import type { RequestHandler } from "msw";
import type { SandboxClock } from "./clock.ts";
import { createDiscordState, discordHandlers } from "./discord.ts";
import { createFaultBoard, isStreamFault } from "./faults.ts";
import { createGoogleChatState, googleChatHandlers } from "./google-chat.ts";
import type { Instances } from "./instance-control-interface.ts";
import { createLineState, lineHandlers } from "./line.ts";
import { createMetaState, metaHandlers } from "./meta.ts";
import type { Origin } from "./network-origins-and-refusals.ts";
import { createTally } from "./record-received.ts";
import { createOpenAiState, openAiHandlers } from "./openai-ads.ts";
import { createSlackState, slackHandlers } from "./slack.ts";
import { createSnapState, snapHandlers } from "./snapchat-ads.ts";
import { createTeamsState, teamsHandlers } from "./teams.ts";
import { createTelegramState, telegramHandlers } from "./telegram.ts";
import { createWhatsappState, whatsappHandlers } from "./whatsapp.ts";
import { consentHandlers } from "./x/handle-oauth-consent.ts";
import { activityHandlers } from "./x/activity-subscriptions-and-stream.ts";
import { conversationHandlers } from "./x/conversations.ts";
import { messageHandlers } from "./x/messages.ts";
import { searchHandlers } from "./x/search.ts";
import { createXState, type XApp, type XLimits } from "./x/state.ts";
import { tokenHandlers } from "./x/tokens.ts";
import { userHandlers } from "./x/users-followers-and-list-members.ts";

export interface WorldOptions {
  /** Limits of X that replace the documented ones. */
  readonly x?: Partial<XLimits>;
  readonly xApp?: XApp;
  /** Instances that the sandbox's pages can kill and restart; undefined if there are none. */
  readonly instances?: Instances | undefined;
}

/** Creates the whole state of the sandbox: its clock, its faults and each simulated network. */
export function createWorld(clock: SandboxClock, { x = {}, xApp = {}, instances }: WorldOptions) {
  const faults = createFaultBoard();
  return {
    clock,
    instances,
    faults,
    tally: createTally(),
    x: createXState(clock, x, xApp, () => faults.take("x", "", isStreamFault)?.kind),
    meta: createMetaState(clock),
    openai: createOpenAiState(clock),
    snap: createSnapState(clock),
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
 * Removes all that keeps a service from its networks: ends faults and their waits, and resets limits. Keeps received
 * messages; the person on WhatsApp counts as having written just now.
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

/** State of the sandbox, with the controls that its pages and tests use. */
export interface ControlledWorld extends World {
  /** Origin of the sandbox, such as `http://127.0.0.1:8090`. */
  readonly url: string;
  /** Resets the whole state as after a start, except the clock. */
  reset(): void;
  /** Ends all faults and resets all limits; keeps the messages and events that the networks received. */
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
      ...activityHandlers(x),
    ],
    "x-web": consentHandlers(x),
    meta: metaHandlers(world.meta),
    openai: openAiHandlers(world.openai),
    snap: snapHandlers(world.snap),
    slack: slackHandlers(world.slack),
    discord: discordHandlers(world.discord),
    google_chat: googleChatHandlers(world.googleChat),
    teams: teamsHandlers(world.teams),
    telegram: telegramHandlers(world.telegram),
    line: lineHandlers(world.line),
    whatsapp: whatsappHandlers(world.whatsapp),
  };
}
