// On the memory harness.
import { expect, test } from "bun:test";
import { ask, openApp, TOKEN } from "../../harness/memory/app.ts";
import { clickOf } from "../../harness/memory/new-events.ts";

const outcome = { attempt_id: "1", run_id: "run-1", recipient: { id: "101", username: "ann" } };
const text = { text: "Hi", template: "aaaa", variant: "A", links: ["go.example/x"], day: "2026-11-20" };

async function openWithMessage(given = {}) {
  const world = await openApp({ tokens: false, ...given });
  await world.append("outreach", { type: "DirectMessageAttempted", data: { ...outcome, ...text } });
  await world.append("outreach", {
    type: "DirectMessageSent",
    data: { ...outcome, message_id: "m", settled_by: "answer" },
  });
  await world.append("link", clickOf({ bot: true }));
  await world.projector.until(3);
  return world;
}

test("results are counted over all time, or in an interval and the one before it, as of a position", async () => {
  await using world = await openWithMessage();
  const results = async (query = "") => (await ask(world.app, `/social/results${query}`)).json();
  const clicks = { total: 0, unique: 0, suspected: 0, anonymous: 0, bots: 1, probes: 0 };
  expect(await results()).toMatchObject({
    by: "variant",
    rows: [{ template: "aaaa", variant: "A", sent: 1, clicks, previous: null }],
    as_of: { position: 3, time: world.projector.time ?? "" },
  });
  const today = (world.projector.time ?? "").slice(0, 10);
  expect(await results(`?by=day&from=${today}&to=${today}`)).toMatchObject({
    interval: { from: `${today}T00:00:00.000Z` },
    rows: [{ day: today, sent: 1, clicks }],
    total: { sent: 1, previous: { sent: 0 } },
  });
});

test("as CSV where the query or Accept asks for it", async () => {
  await using world = await openWithMessage();
  const type = async (query: string, accept?: string) => {
    const response = await ask(
      world.app,
      `/social/results${query}`,
      accept === undefined ? {} : { headers: { accept } },
    );
    return response.headers.get("content-type");
  };
  expect(await type("?format=csv")).toBe("text/csv; charset=utf-8");
  expect(await type("", "text/csv")).toBe("text/csv; charset=utf-8");
  expect(await type("?format=json", "text/csv")).toBe("application/json");
  expect(await type("", "*/*")).toBe("application/json");
  const body = await (await ask(world.app, "/social/results?by=link&format=csv")).text();
  expect(body.split("\r\n")[1]).toStartWith('"go.example/x","1","1",');
});

test("what is no grouping, day or format is refused", async () => {
  await using world = await openWithMessage();
  for (const query of ["by=colour", "from=7", "from=2026-11-21&to=2026-11-20", "to=yesterday", "format=xml"]) {
    const response = await ask(world.app, `/social/results?${query}`);
    expect([query, response.status]).toEqual([query, 422]);
  }
});

test("once a token is configured, callers with a token and signed-in browsers get them, others do not", async () => {
  await using world = await openWithMessage({ tokens: true });
  expect((await ask(world.app, "/social/results")).status).toBe(401);
  expect((await ask(world.app, "/social/results", { token: TOKEN })).status).toBe(200);
});

test("while the log is out of reach they say that they may be out of date", async () => {
  await using world = await openWithMessage({ awaySince: 0 });
  expect(await (await ask(world.app, "/social/results")).json()).toMatchObject({ as_of: { stale: true } });
});
