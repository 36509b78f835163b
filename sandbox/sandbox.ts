import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createClock } from "./clock.ts";
import { control } from "./control/routes.ts";
import { exchange } from "./handle-request.ts";
import { isOrigin } from "./network-origins-and-refusals.ts";
import { credentialsOf, urlsOf, type Credentials, type Urls } from "./service-settings.ts";
import { tooLarge, toRequest, writeAnswer } from "./convert-node-http-messages.ts";
import { createWorld, handlersOf, removeObstacles, type ControlledWorld, type WorldOptions } from "./world.ts";

export interface SandboxOptions extends WorldOptions {
  /** Port to listen on; default 0, which means any free one. */
  readonly port?: number;
  readonly hostname?: string;
  /** Source of the real time, in ms since the epoch. The sandbox's clock starts at it. */
  readonly clock?: () => number;
}

/**
 * Substitutes for X, Meta and the chat and messaging networks over real HTTP, as strict as the real ones. Tests read
 * and change their state here, other processes through `/_sandbox/`.
 */
export interface Sandbox extends AsyncDisposable, ControlledWorld {
  /** Addresses to put into a service's settings in place of the real networks' addresses. */
  readonly urls: Urls;
  readonly credentials: Credentials;
}

const LOOPBACK = "127.0.0.1";

export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { port = 0, hostname = LOOPBACK } = options;
  const clock = createClock(options.clock ?? Date.now);
  const world = createWorld(clock, options);
  let handlers = handlersOf(world);

  const server = createServer((incoming, response) => {
    void answer(incoming, response).catch((fault: unknown) => failOpenly(response, fault));
  });
  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [, first = ""] = (incoming.url ?? "/").split("/");
    if (isOrigin(first)) return exchange(incoming, response, first, sandbox, handlers);
    const request = await toRequest(incoming, sandbox.url + (incoming.url ?? "/"));
    await writeAnswer(response, request === undefined ? tooLarge() : await control(sandbox, request), clock.now());
  };

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, hostname, resolve);
  });
  const url = `http://${hostname}:${(server.address() as AddressInfo).port}`;
  const sandbox: Sandbox = {
    url,
    urls: urlsOf(url, world),
    credentials: credentialsOf(world),
    ...world,
    allOff: () => removeObstacles(sandbox, options),
    reset() {
      sandbox.faults.release();
      for (const connection of sandbox.x.activity.connections) connection.end("cut");
      Object.assign(sandbox, createWorld(clock, options));
      handlers = handlersOf(sandbox);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  return sandbox;
}

/** Answers 500 in plain text, so that a defect of the sandbox itself does not look like a network's fault. */
function failOpenly(response: ServerResponse, fault: unknown): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(500, { "content-type": "text/plain" });
  response.end(`the sandbox itself failed: ${fault instanceof Error ? fault.stack : String(fault)}`);
}
