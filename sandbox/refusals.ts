import { discordError, discordRefusals } from "./discord.ts";
import { googleChatRefusals, googleError } from "./google-chat.ts";
import { unknownPath } from "./refuse-like-meta-graph-api.ts";
import { lineError, lineRefusals } from "./line.ts";
import { metaRefusals } from "./meta.ts";
import type { Network, Refusals, Refused } from "./network-origins-and-refusals.ts";
import { openAiError, openAiRefusals } from "./openai-ads.ts";
import { plain, slackRefusals } from "./slack.ts";
import { snapError, snapRefusals } from "./snapchat-ads.ts";
import { teamsError, teamsRefusals } from "./teams.ts";
import { telegramError, telegramRefusals } from "./telegram.ts";
import { whatsappRefusals } from "./whatsapp.ts";
import { notFound, xRefusals } from "./x/error-answers.ts";

const REFUSALS = {
  x: xRefusals,
  meta: metaRefusals,
  openai: openAiRefusals,
  snap: snapRefusals,
  slack: slackRefusals,
  discord: discordRefusals,
  google_chat: googleChatRefusals,
  teams: teamsRefusals,
  telegram: telegramRefusals,
  line: lineRefusals,
  whatsapp: whatsappRefusals,
} satisfies Record<Network, Refusals>;

type KindsOf<R> = R extends unknown ? keyof R : never;

/** Kind of refusal that a fault makes a network send instead of its normal answer. */
export type RefusalKind = "502_html" | KindsOf<(typeof REFUSALS)[Network]>;

/**
 * Returns a network's refusals: kind -> function that answers a request with it. A network lacks the kinds that it
 * cannot have.
 */
export function refusalsOf(network: Network): Partial<Record<RefusalKind, (refused: Refused) => Response>> {
  return { "502_html": badGateway, ...REFUSALS[network] };
}

/** Answers as a proxy in front of a network that is down: in HTML, although the caller expects JSON. */
function badGateway(): Response {
  const page = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>";
  return new Response(page, { status: 502, headers: { "content-type": "text/html" } });
}

/** Network -> its answer to a request for an unknown path. */
export const UNKNOWN_PATH: Readonly<Record<Network, (path: string) => Response>> = {
  x: notFound,
  meta: unknownPath,
  openai: () => openAiError(404, "Not found"),
  snap: () => snapError(404, "Not found"),
  slack: () => plain(404, "no_service"),
  discord: () => discordError(404, 0, "404: Not Found"),
  google_chat: () => googleError(404, "NOT_FOUND", "Requested entity was not found."),
  teams: () => teamsError(404, "ResourceNotFound", "The requested resource does not exist."),
  telegram: () => telegramError(404, "Not Found"),
  line: () => lineError(404, "Not found"),
  whatsapp: unknownPath,
};
