// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { signalRead } from "../../sandbox/x/activity-subscriptions-and-stream.ts";
import { deliver } from "../../sandbox/x/messages.ts";
import { idle } from "../faults/expect-daily-limit-kept.ts";
import { addPeople } from "../faults/add-people-and-count-messages.ts";
import {
  authorize,
  BEARER,
  exported,
  openInstallation,
  stop,
  until,
  type Installation,
  type ListeningService,
} from "../harness/process.ts";

const PERSON_1 = "7000000001";
const PERSON_2 = "7000000002";

async function open(settings: Readonly<Record<string, string>>): Promise<Installation> {
  const world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 10_000, keepAliveMs: 100 } });
  Object.assign(world.env, settings);
  await addPeople(world, 2);
  return world;
}

async function run(service: ListeningService, limit: number): Promise<void> {
  const answer = await service.post("/social/run", { limit }, { ...BEARER, prefer: "wait=300" });
  expect(answer.status).toBe(200);
}

const eventsOf = async (world: Installation, type: string) =>
  (await exported(world)).filter((event) => event.type === type).map(({ data }) => data);

/** Waits until the log has an event of a type. */
const untilRecorded = (world: Installation, type: string) =>
  until(
    () => eventsOf(world, type),
    ({ length }) => length > 0,
  );

test("a recipient who opts out on their page while X makes the run wait gets no message", async () => {
  await using world = await open({ PUBLIC_URL: "http://localhost:0", MESSAGE_TEMPLATE: "Hi {{name}}: {{optout}}" });
  const service = await world.host();
  await authorize(service, world.sandbox);
  const path = `/with/${PERSON_1}/messages`;
  world.sandbox.faults.add({ network: "x", kind: "429", retryAfter: 600, path, count: 1 });
  expect((await service.post("/social/run", {}, BEARER)).status).toBe(202);
  const [attempted] = await untilRecorded(world, "DirectMessageAttempted");
  const page = `/o/${String(attempted?.["opt_out_code"])}`;
  const headers = { accept: "text/html", "accept-language": "de" };
  const shown = await service.get(page, { headers });
  const { "content-language": language, "set-cookie": cookie } = Object.fromEntries(shown.headers);
  expect([shown.status, language, cookie]).toEqual([200, "de", undefined]);
  const text = await shown.text();
  expect([Buffer.byteLength(text) <= 10_000, text.includes("person_1")]).toEqual([true, false]);
  expect((await service.get(page, { method: "HEAD", headers })).status).toBe(200);
  expect(await eventsOf(world, "RecipientSuppressed")).toEqual([]);
  const pressed = await fetch(service.url + page, {
    method: "POST",
    headers,
    body: new URLSearchParams({ do: "stop" }),
  });
  expect(pressed.status).toBe(200);
  // The page answers only after the log has the opt-out, so the log must have it by now.
  const suppressed = await eventsOf(world, "RecipientSuppressed");
  expect(suppressed).toMatchObject([{ recipient: { id: PERSON_1 }, reason: "opt_out_page" }]);
  await world.command("outreach", "stop");
  await idle(service);
  await run(service, 100);
  expect([...world.sandbox.x.accepted]).toEqual([[PERSON_2, 1]]);
  expect(await stop(service)).toBe(0);
});

test("a stop word that X signals suppresses its sender, a receipt counts as seen, and signals have a cost", async () => {
  await using world = await open({ MESSAGE_TEMPLATE: "Hi {{name}}, reply STOP" });
  const { x } = world.sandbox;
  const service = await world.host({ X_APP_BEARER_TOKEN: x.appBearer });
  await authorize(service, world.sandbox);
  await until(
    async () => x.activity.connections.size,
    (count) => count > 0,
  );
  await run(service, 1);
  const own = [...x.people.values()].find(({ username }) => username === "acme_team")!.id;
  // When the stream opens, the service reads the inbox once for what it missed. Waits for that, because this reading
  // could otherwise find the stop word before the stream does.
  await until(
    () => eventsOf(world, "InboxRead"),
    (reads) => reads.some(({ run_id }) => run_id === undefined),
  );
  deliver(x, PERSON_2, own, "Stop, please");
  const [suppressed] = await untilRecorded(world, "RecipientSuppressed");
  expect(suppressed).toMatchObject({ recipient: { id: PERSON_2 }, reason: "opt_out", via: "stream" });
  signalRead(x, PERSON_1, own);
  await untilRecorded(world, "DirectMessagesSeen");
  const recorded = async (): Promise<readonly number[]> => {
    const types = ["RunFinished", "SignalsReceived", "InboxRead"];
    const charged = await Promise.all(types.map((type) => eventsOf(world, type)));
    return charged.flat().map(({ usage }) => (usage as { usd: number } | undefined)?.usd ?? 0);
  };
  // Waits until the cost in the results equals the sum of the costs in the log, because the service may record another
  // reading of the inbox between the two queries.
  const { costs } = await until(
    async () => {
      const answer = await service.get("/social/results", { headers: BEARER });
      const { cost_usd, total } = (await answer.json()) as { cost_usd: number; total: { seen: number } };
      return { cost_usd, seen: total.seen, costs: await recorded() };
    },
    ({ cost_usd, seen, costs }) => seen === 1 && Math.abs(cost_usd - costs.reduce((sum, usd) => sum + usd, 0)) < 1e-6,
  );
  expect(costs.filter((usd) => usd > 0).length).toBeGreaterThan(1);
  await run(service, 100);
  expect([...x.accepted]).toEqual([[PERSON_1, 1]]);
  expect(await stop(service)).toBe(0);
});
