/** Intake of the compared outboxes: the service's route in fastify, on Node. */
import { createRequire } from "node:module";

// The part of fastify's interface that is used here; the package is installed only for the comparison.
interface Reply {
  code(status: number): void;
}
interface App {
  post(
    path: string,
    options: object,
    handler: (request: { readonly body: Click }, reply: Reply) => Promise<object>,
  ): void;
  listen(options: { readonly host: string; readonly port: number }): Promise<string>;
}

export interface Click {
  readonly event: string;
  readonly domain: string;
  readonly short_code: string;
  readonly original_url: string;
  readonly ip?: string;
  readonly user_agent?: string;
}

const text = { type: "string" };
const properties = { event: text, domain: text, short_code: text, original_url: text, ip: text, user_agent: text };
const body = { type: "object", properties, required: ["event", "domain", "short_code", "original_url"] };

/**
 * Serves `POST /api/tracking/event` in fastify. `record` stores a click and its pending deliveries durably, and returns
 * the click's id.
 */
export async function takeClicks(record: (click: Click) => string | Promise<string>): Promise<void> {
  const fastify = createRequire(import.meta.url)("fastify") as () => App;
  const app = fastify();
  app.post("/api/tracking/event", { schema: { body } }, async (request, reply) => {
    const id = await record(request.body);
    reply.code(202);
    return { id };
  });
  console.error(JSON.stringify({ url: await app.listen({ host: "127.0.0.1", port: 0 }) }));
}
