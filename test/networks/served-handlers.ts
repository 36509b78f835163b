import { getResponse, type RequestHandler } from "msw";
import { serve, type TestServer } from "../harness/memory/servers.ts";

/** A network's handlers of the sandbox by themselves, over real HTTP. */
export function serveHandlers(origin: string, handlers: RequestHandler[]): TestServer {
  return serve(async ({ method, path, query, headers, body }) => {
    const init = { method, headers, ...(method === "GET" ? {} : { body }) };
    const answer = await getResponse(handlers, new Request(`${origin}${path}?${query.toString()}`, init));
    return answer ?? new Response("no handler", { status: 501 });
  });
}
