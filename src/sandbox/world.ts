import type { RequestHandler } from "msw";
import type { SandboxClock } from "./clock.ts";
import { createDiscordState, discordHandlers, type DiscordState } from "./discord/handlers.ts";
import { createFaultBoard, type FaultBoard } from "./faults.ts";
import { createGoogleChatState, googleChatHandlers, type GoogleChatState } from "./google-chat/handlers.ts";
import { lineHandlers } from "./line/handlers.ts";
import { createLineState, type LineState } from "./line/state.ts";
import { metaHandlers } from "./meta/handlers.ts";
import { createMetaState, type MetaState } from "./meta/state.ts";
import type { Origin } from "./network.ts";
import { createSlackState, slackHandlers, type SlackState } from "./slack/handlers.ts";
import { createTally, type Tally } from "./tally.ts";
import { createTeamsState, teamsHandlers, type TeamsState } from "./teams/handlers.ts";
import { telegramHandlers } from "./telegram/handlers.ts";
import { createTelegramState, type TelegramState } from "./telegram/state.ts";
import { whatsappHandlers } from "./whatsapp/handlers.ts";
import { createWhatsappState, type WhatsappState } from "./whatsapp/state.ts";
import { audienceHandlers } from "./x/audiences.ts";
import { consentHandlers } from "./x/consent.ts";
import { conversationHandlers } from "./x/conversations.ts";
import { messageHandlers } from "./x/messages.ts";
import { oauthHandlers } from "./x/oauth.ts";
import { searchHandlers } from "./x/search.ts";
import { createXState, type XApp, type XLimits, type XState } from "./x/state.ts";
import { userHandlers } from "./x/users.ts";

/** Everything that the sandbox remembers: the networks as they are now. */
export interface World {
  readonly clock: SandboxClock;
  readonly faults: FaultBoard;
  readonly tally: Tally;
  readonly x: XState;
  readonly meta: MetaState;
  readonly slack: SlackState;
  readonly discord: DiscordState;
  readonly googleChat: GoogleChatState;
  readonly teams: TeamsState;
  readonly telegram: TelegramState;
  readonly line: LineState;
  readonly whatsapp: WhatsappState;
}

/** The world as its own pages control it. */
export interface ControlledWorld extends World {
  /** The origin, without a slash at its end. */
  readonly url: string;
  /** Forgets everything, as if just started; only the clock goes on. */
  reset(): void;
}

export interface WorldOptions {
  /** X's limits where they are not to be the documented ones. */
  readonly x?: Partial<XLimits>;
  readonly xApp?: XApp;
}

export function createWorld(clock: SandboxClock, { x = {}, xApp = {} }: WorldOptions): World {
  return {
    clock,
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

export type Handlers = Readonly<Record<Origin, RequestHandler[]>>;

export function handlersOf(world: World): Handlers {
  const { x } = world;
  return {
    x: [
      ...oauthHandlers(x),
      ...userHandlers(x),
      ...audienceHandlers(x),
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
