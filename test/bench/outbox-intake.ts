/** How each of the outboxes takes clicks: the route of the service, with fastify, on Node. */
import { createRequire } from "node:module";

// The part of its interface that is used here; the package is installed only where outboxes are compared.
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

/** `record` makes a click durable, with what it has to be delivered to, and gives its id. */
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
