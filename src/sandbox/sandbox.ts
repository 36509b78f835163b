import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { getResponse, type RequestHandler } from "msw";
import { createClock, type SandboxClock } from "./clock.ts";
import { control } from "./control.ts";
import { createFaultBoard, type Fault, type FaultBoard } from "./faults.ts";
import { createMetaState, metaHandlers, metaRefusal, type MetaState } from "./meta.ts";
import { isOrigin, networkOf, ORIGINS, type Network, type Origin } from "./network.ts";
import { createSlackState, slackHandlers, slackRefusal, type SlackState } from "./slack.ts";
import { createTelegramState, telegramHandlers, telegramRefusal, type TelegramState } from "./telegram.ts";
import { cutOff, hang, toRequest, writeAnswer } from "./transport.ts";
import { consentHandlers } from "./x/consent.ts";
import { messageHandlers } from "./x/messages.ts";
import { oauthHandlers } from "./x/oauth.ts";
import { xRefusal } from "./x/refusals.ts";
import { createXState, type XLimits, type XState } from "./x/state.ts";
import { userHandlers } from "./x/users.ts";

export interface SandboxOptions {
  /** 0: any free port. */
  readonly port: number;
  readonly x?: Partial<XLimits>;
}

/** Stand-ins for X, Meta, Slack and Telegram over real HTTP, no kinder than the real ones. */
export interface Sandbox extends AsyncDisposable {
  readonly url: string;
  readonly clock: SandboxClock;
  readonly faults: FaultBoard;
  readonly x: XState;
  readonly meta: MetaState;
  readonly slack: SlackState;
  readonly telegram: TelegramState;
}

const HOST = "127.0.0.1";

const REFUSALS: Record<Network, (kind: string, retryAfter: number | undefined) => Response | undefined> = {
  x: xRefusal,
  meta: metaRefusal,
  slack: slackRefusal,
  telegram: telegramRefusal,
};

export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const clock = createClock(Date.now);
  const state = {
    clock,
    faults: createFaultBoard(),
    x: createXState(clock, options.x ?? {}),
    meta: createMetaState(clock),
    slack: createSlackState(clock),
    telegram: createTelegramState(clock),
  };
  const handlers: Record<Origin, readonly RequestHandler[]> = {
    x: [...oauthHandlers(state.x), ...userHandlers(state.x), ...messageHandlers(state.x)],
    "x-web": consentHandlers(state.x),
    meta: metaHandlers(state.meta),
    slack: slackHandlers(state.slack),
    telegram: telegramHandlers(state.telegram),
  };
  const server = createServer((request, response) => {
    void answer(request, response).catch(() => cutOff(request));
  });

  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [, first = "", ...rest] = (incoming.url ?? "/").split("/");
    if (!isOrigin(first)) return writeAnswer(response, await control(sandbox, await toRequest(incoming, sandbox.url)));
    const network = networkOf(first);
    // The consent page is for people; faults are for the API.
    const fault = first === "x-web" ? undefined : state.faults.take(network, incoming.url ?? "");
    const request = await toRequest(incoming, `${ORIGINS[first]}/${rest.join("/")}`);
    await serve(incoming, response, fault, network, () => handled(handlers[first], request));
  };

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(options.port, HOST, resolve);
  });
  const { port } = server.address() as AddressInfo;
  const sandbox: Sandbox = {
    ...state,
    url: `http://${HOST}:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  return sandbox;
}

async function handled(handlers: readonly RequestHandler[], request: Request): Promise<Response> {
  const response = await getResponse([...handlers], request);
  return response ?? new Response("Not Found", { status: 404 });
}

/** Answers one request, or does to it what the fault says. */
async function serve(
  incoming: IncomingMessage,
  response: ServerResponse,
  fault: Fault | undefined,
  network: Network,
  handle: () => Promise<Response>,
): Promise<void> {
  if (fault === undefined) return writeAnswer(response, await handle());
  switch (fault.kind) {
    case "timeout_before":
      return hang(incoming);
    case "timeout_after_delivery":
      await handle();
      return hang(incoming);
    case "reset_before":
      return cutOff(incoming);
    case "reset_after_delivery":
      await handle();
      return cutOff(incoming);
    case "slow_body":
    case "huge_body":
    case "invalid_json":
      return writeAnswer(response, await handle(), fault.kind);
    default: {
      const refusal = REFUSALS[network](fault.kind, fault.retryAfter);
      return writeAnswer(response, refusal ?? (await handle()));
    }
  }
}
