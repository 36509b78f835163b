import type { IncomingMessage, ServerResponse } from "node:http";
import { getResponse } from "msw";
import { isStreamFault, type Fault } from "./faults.ts";
import { networkOf, ORIGINS, type Origin } from "./network-origins-and-refusals.ts";
import { countAnswer } from "./record-received.ts";
import { refusalsOf, UNKNOWN_PATH, type RefusalKind } from "./refusals.ts";
import {
  cutOff,
  isSpoiled,
  SPOILED,
  tooLarge,
  toRequest,
  writeAnswer,
  writeHead,
} from "./convert-node-http-messages.ts";
import { isStream, openStream } from "./x/activity-subscriptions-and-stream.ts";
import type { Handlers, World } from "./world.ts";
import { ledBack } from "./x/paginate.ts";

/**
 * Passes a request to the handlers of its network and counts it. A fault that is on may change or replace the answer.
 */
export async function exchange(
  incoming: IncomingMessage,
  response: ServerResponse,
  origin: Origin,
  { faults, tally, clock, x }: World,
  handlers: Handlers,
): Promise<void> {
  const path = incoming.url ?? "/";
  const network = networkOf(origin);
  const request = await toRequest(incoming, ORIGINS[origin] + path.slice(`/${origin}`.length));
  const counts = tally[network];
  counts.requests++;
  response.once("finish", () => countAnswer(counts, response.statusCode));
  const handle = async (): Promise<Response> =>
    request === undefined
      ? tooLarge()
      : ((await getResponse(handlers[origin], request)) ?? UNKNOWN_PATH[network](path));
  // Faults affect only the API, not the consent page for people.
  const fault = origin === "x-web" ? undefined : faults.take(network, path);
  const now = clock.now();
  if (fault === undefined && request !== undefined && isStream(path)) return openStream(x, request, response);
  if (fault === undefined) return writeAnswer(response, await handle(), now);
  const hold = (end: () => void): void => void response.once("close", faults.hold(fault, end));
  return suffer(fault, { incoming, response, path, now, handle, hold });
}

/** A request to a network, with the means to answer it. */
interface Exchange {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  /** The sandbox's time, ms since the epoch. */
  readonly now: number;
  /** Performs the request as the network would, without a fault, and returns the answer. */
  handle(): Promise<Response>;
  /**
   * Registers how to end a wait that the fault imposes, in case the fault is switched off before the client gives up.
   */
  hold(end: () => void): void;
}

async function suffer(fault: Fault, { incoming, response, path, now, handle, hold }: Exchange): Promise<void> {
  const { network, kind } = fault;
  if (isStreamFault(kind)) throw new Error("a fault of signals changes no answer");
  if (isSpoiled(kind)) {
    const answer = await handle();
    writeHead(response, answer, now);
    return SPOILED[kind](response, Buffer.from(await answer.arrayBuffer()), hold);
  }
  switch (kind) {
    // Sends no answer; the request ends when the client gives up.
    case "timeout_before":
      return hold(() => cutOff(incoming));
    case "timeout_after_delivery":
      hold(() => cutOff(incoming));
      return void (await handle());
    case "reset_before":
      return cutOff(incoming);
    case "reset_after_delivery":
      await handle();
      return cutOff(incoming);
    case "repeated_cursor":
      return writeAnswer(response, await ledBack(await handle(), path, now), now);
    case "redirect": {
      const headers = { location: `/${network}/elsewhere` };
      return writeAnswer(response, new Response(null, { status: 307, headers }), now);
    }
    default:
      return writeAnswer(response, refusal(fault, kind, path, now), now);
  }
}

/**
 * Returns the refusal that the fault demands, in the network's form, with `Retry-After` as a date if the fault says so.
 */
function refusal({ network, retryAfter, asDate }: Fault, kind: RefusalKind, path: string, now: number): Response {
  const answer = refusalsOf(network)[kind]?.({ retryAfter, path, now });
  if (answer === undefined) throw new Error(`${network} does not refuse so: ${kind}`);
  const seconds = answer.headers.get("retry-after");
  if (asDate === true && seconds !== null) {
    answer.headers.set("retry-after", new Date(now + Number(seconds) * 1000).toUTCString());
  }
  return answer;
}
