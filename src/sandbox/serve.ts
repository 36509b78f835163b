import type { IncomingMessage, ServerResponse } from "node:http";
import { discordRefusal } from "./discord/answers.ts";
import type { Fault } from "./faults.ts";
import { googleChatRefusal } from "./google-chat/answers.ts";
import { lineRefusal } from "./line/answers.ts";
import { metaRefusal } from "./meta/answers.ts";
import type { Network } from "./network.ts";
import { slackRefusal } from "./slack/answers.ts";
import { cutOff, isSpoiled, SPOILED } from "./spoil.ts";
import { teamsRefusal } from "./teams/answers.ts";
import { telegramRefusal } from "./telegram/answers.ts";
import { writeAnswer, writeHead } from "./transport.ts";
import { whatsappRefusal } from "./whatsapp/answers.ts";
import { ledBack } from "./x/page.ts";
import { xRefusal } from "./x/refusals.ts";

/** One request to a network, and what is to happen to it. */
export interface Exchange {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  readonly network: Network;
  /** The sandbox's time, ms since the epoch. */
  readonly now: number;
  /** Does what was asked, as the network would. */
  handle(): Promise<Response>;
}

const REFUSALS: Record<Network, (fault: Fault, now: number, path: string) => Response> = {
  x: xRefusal,
  meta: metaRefusal,
  slack: slackRefusal,
  discord: (fault, _now, path) => discordRefusal(fault, path),
  google_chat: googleChatRefusal,
  teams: teamsRefusal,
  telegram: telegramRefusal,
  line: lineRefusal,
  whatsapp: whatsappRefusal,
};

/** Answers one request, or does to it what the fault says. */
export async function serve(exchange: Exchange, fault: Fault | undefined): Promise<void> {
  const { incoming, response, network, now, handle } = exchange;
  if (fault === undefined) return writeAnswer(response, await handle(), now);
  if (isSpoiled(fault.kind)) {
    const answer = await handle();
    writeHead(response, answer, now);
    return SPOILED[fault.kind](response, Buffer.from(await answer.arrayBuffer()));
  }
  switch (fault.kind) {
    // No answer ever: the request ends when the client has had enough.
    case "timeout_before":
      return;
    case "timeout_after_delivery":
      return void (await handle());
    case "reset_before":
      return cutOff(incoming);
    case "reset_after_delivery":
      await handle();
      return cutOff(incoming);
    case "repeated_cursor":
      return writeAnswer(response, await ledBack(await handle(), incoming.url ?? "", now), now);
    case "redirect":
      return writeAnswer(
        response,
        new Response(null, { status: 307, headers: { location: `/${network}/elsewhere` } }),
        now,
      );
    default:
      return writeAnswer(response, worded(REFUSALS[network](fault, now, incoming.url ?? ""), fault, now), now);
  }
}

/** The answer with its `Retry-After` as the fault wants it written. */
function worded(answer: Response, { asDate }: Fault, now: number): Response {
  const seconds = answer.headers.get("retry-after");
  if (asDate === true && seconds !== null) {
    answer.headers.set("retry-after", new Date(now + Number(seconds) * 1000).toUTCString());
  }
  return answer;
}
