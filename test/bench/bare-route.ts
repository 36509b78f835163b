/** The limit of the intake benchmark: the same route and schema, a synchronous handler, no storage. */
import { Elysia } from "elysia";
import { makeId } from "../../src/platform/clock.ts";
import { trackingBody } from "../../src/http/features/tracking.ts";

const app = new Elysia({ normalize: false })
  .post(
    "/api/tracking/event",
    ({ set }) => {
      set.status = 202;
      return { id: makeId() };
    },
    { body: trackingBody },
  )
  .listen({ hostname: "127.0.0.1", port: 0 });

console.error(JSON.stringify({ url: `http://127.0.0.1:${app.server?.port}` }));
