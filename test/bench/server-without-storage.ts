/**
 * Server with which intake and redirect are compared: the service's routes and schema with synchronous handlers and no
 * storage.
 */
import { Elysia } from "elysia";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { trackingBody } from "../../src/http/features/record-click-and-redirect.ts";

const app = new Elysia({ normalize: false })
  .post(
    "/api/tracking/event",
    ({ set }) => {
      set.status = 202;
      return { id: makeId() };
    },
    { body: trackingBody },
  )
  .get("/l/:code", ({ redirect }) => redirect("https://shop.example/", 302))
  .listen({ hostname: "127.0.0.1", port: 0 });

console.error(JSON.stringify({ url: `http://127.0.0.1:${app.server?.port}` }));
