import type { IncomingMessage, ServerResponse } from "node:http";
import { getResponse } from "msw";
import * as discord from "./discord/answers.ts";
import * as googleChat from "./google-chat/answers.ts";
import * as line from "./line/answers.ts";
import { unknownPath } from "./meta/answers.ts";
import { networkOf, ORIGINS, type Network, type Origin } from "./network.ts";
import { serve } from "./serve.ts";
import { plain } from "./slack/answers.ts";
import { countAnswer } from "./tally.ts";
import * as teams from "./teams/answers.ts";
import { failed } from "./telegram/answers.ts";
import { tooLarge, toRequest } from "./transport.ts";
import type { Handlers, World } from "./world.ts";
import { notFound } from "./x/answers.ts";

/** How each network words a path that it does not have. */
const UNKNOWN: Record<Network, (path: string) => Response> = {
  x: notFound,
  meta: unknownPath,
  slack: () => plain(404, "no_service"),
  discord: () => discord.failed(404, 0, "404: Not Found"),
  google_chat: () => googleChat.failed(404, "NOT_FOUND", "Requested entity was not found."),
  teams: () => teams.failed(404, "ResourceNotFound", "The requested resource does not exist."),
  telegram: () => failed(404, "Not Found"),
  line: () => line.failed(404, "Not found"),
  whatsapp: unknownPath,
};

/** Takes one request to the handlers of its network, and counts it. */
export async function passOn(
  incoming: IncomingMessage,
  response: ServerResponse,
  origin: Origin,
  { faults, tally, clock }: World,
  handlers: Handlers,
): Promise<void> {
  const path = incoming.url ?? "/";
  const network = networkOf(origin);
  const request = await toRequest(incoming, ORIGINS[origin] + path.slice(`/${origin}`.length));
  const counts = tally[network];
  counts.requests++;
  response.once("finish", () => countAnswer(counts, response.statusCode));
  const handle = async (): Promise<Response> =>
    request === undefined ? tooLarge() : ((await getResponse(handlers[origin], request)) ?? UNKNOWN[network](path));
  // The consent page is for people; faults are for the API.
  const fault = origin === "x-web" ? undefined : faults.take(network, path);
  await serve({ incoming, response, network, now: clock.now(), handle }, fault);
}
