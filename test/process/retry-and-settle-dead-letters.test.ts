// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing";
import { loadConfig } from "../../src/config/config.ts";
import { createEventLog, STREAMS, type EventLog, type NewEvent } from "../../src/log/event-log.ts";
import { openLog } from "../../src/privacy/open-log.ts";
import { CLICK } from "../harness/sample-click.ts";
import { outcomeOf } from "../harness/in-process/dispatch-outcome-events.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import {
  BEARER,
  exported,
  openInstallation,
  stop,
  until,
  type Installation,
  type ListeningService,
} from "../harness/process.ts";

const MATCHING = 10_000;
const OTHERS = 300;
const PER_EVENT = 100;

/** Pause between two clicks of a visitor, in ms. Without it, the test would measure how many clicks fit in a second. */
const CLICK_PAUSE_MS = 50;

/** Writes a log on SQLite or PostgreSQL by `fill`, then starts a service on it. */
async function openWith<T>(
  stack: AsyncDisposableStack,
  place: () => Promise<Record<string, string>>,
  fill: (eventLog: EventLog) => Promise<T>,
) {
  const world = stack.use(await openInstallation());
  Object.assign(world.env, await place());
  const filled = await writeLog(world, fill);
  return { world, filled, service: await world.host() };
}

async function writeLog<T>({ env }: Installation, fill: (eventLog: EventLog) => Promise<T>): Promise<T> {
  await using log = await openLog(loadConfig(env, () => ""));
  return await fill(createEventLog(log, () => Bun.randomUUIDv7()));
}

const ENGINES = [
  ["in a file", async () => ({})],
  ["on a server", async () => ({ DATABASE_URL: await newDatabase(), REACHLOG_KEY: "07".repeat(32) })],
] as const;

/** Adds dead letters of chat: some after a 503, the others after a 400, and more in total than the projection lists. */
async function giveUpMany(eventLog: EventLog): Promise<void> {
  const click = clickOf({ domain: "go.example", short_code: "welcome", channels: ["chat"] });
  const firsts = Array.from({ length: (MATCHING + OTHERS) / PER_EVENT }, (_, at) => at * PER_EVENT + 1);
  const clicks = Array.from({ length: PER_EVENT }, () => click);
  for (const _ of firsts) await eventLog.append(STREAMS.link("go.example", "welcome"), clicks, {});
  for (const first of firsts) {
    const refused = first <= OTHERS;
    const answer = { mode: "single", status: refused ? 400 : 503, detail: "busy", refused } as const;
    const requests = [{ sources: [[first, first + PER_EVENT - 1] as [number, number]], attempt: 8, ...answer }];
    const data = { channel: "chat", lane: "clicks", low_watermark: first, requests } as const;
    await eventLog.append(STREAMS.delivery("chat"), [{ type: "DispatchAbandoned", data }], {});
  }
}

/** Records a message and that its delivery is in doubt. Returns the id of the message. */
async function doubtOne(eventLog: EventLog): Promise<string> {
  const message: NewEvent = { type: "MessageRequested", data: { text: "perhaps" } };
  const { first: source, ids } = await eventLog.append(STREAMS.requests, [message], {});
  const about = { source, channel: "messaging", lane: "direct", mode: "single", detail: "no answer in time" } as const;
  await eventLog.append(STREAMS.delivery("messaging"), [outcomeOf("DispatchInDoubt", about)], {});
  return ids[0] ?? "";
}

interface Decided {
  readonly done: number;
  readonly left_count: number;
  readonly until_position: number;
}

async function decide(service: ListeningService, body: object) {
  const answer = await service.post("/api/deliveries/retry", body, BEARER);
  return { status: answer.status, ...((await answer.json()) as Decided) };
}

async function countListed(service: ListeningService, query: string): Promise<number> {
  const answer = await fetch(`${service.url}/api/deliveries?${query}`, { headers: BEARER });
  return ((await answer.json()) as { readonly count: number }).count;
}

test.each(ENGINES)(
  "10,000 dead letters %s are retried once, as many as announced, while clicks are accepted",
  async (_, place) => {
    await using stack = new AsyncDisposableStack();
    const { service } = await openWith(stack, place, giveUpMany);
    const filter = { all: true, channel: "chat", error: "5xx", link: "go.example/welcome" };
    expect(await countListed(service, "error=5xx&link=go.example")).toBe(MATCHING);
    const named = await decide(service, { ...filter, dry_run: true });
    expect(named).toMatchObject({ status: 200, done: MATCHING, left_count: 0 });

    const pressed = { ...filter, expected: named.done, until_position: named.until_position };
    const over = new AbortController();
    const retrying = decide(service, pressed).finally(() => over.abort());
    const clicks: number[] = [];
    while (!over.signal.aborted) {
      clicks.push((await service.post("/api/tracking/event", CLICK)).status);
      await Bun.sleep(CLICK_PAUSE_MS);
    }
    expect(new Set(clicks)).toEqual(new Set([202]));
    expect(await retrying).toMatchObject({ status: 200, done: MATCHING, left_count: 0 });

    expect((await decide(service, pressed)).status).toBe(409);
    expect(await decide(service, filter)).toMatchObject({ done: 0, left_count: 0 });
    expect(await countListed(service, "channel=chat")).toBe(OTHERS);
  },
);

test.each(ENGINES)("a message in doubt %s is retried by hand once", async (_, place) => {
  await using stack = new AsyncDisposableStack();
  const { service, world, filled: id } = await openWith(stack, place, doubtOne);
  const { telegram } = world.sandbox;
  expect(await countListed(service, "status=in_doubt")).toBe(1);
  const body = { status: "in_doubt", event_ids: [id], accept_doubles: true };
  expect(await decide(service, body)).toMatchObject({ done: 1, left_count: 0 });
  await until(
    () => Promise.resolve(telegram.messages.total),
    (total) => total === 1,
  );
  expect(await decide(service, body)).toMatchObject({ done: 0, left_count: 1 });
  expect(await countListed(service, "status=in_doubt")).toBe(0);
  expect(telegram.messages.kept.map(({ text }) => text)).toEqual([expect.stringContaining("perhaps")]);
});

test.each(ENGINES)("a message in doubt %s is settled by hand once, and never sent again", async (_, place) => {
  await using stack = new AsyncDisposableStack();
  const { service, world, filled: id } = await openWith(stack, place, doubtOne);
  const settle = async (url: string, as: string) => {
    const body = { event_ids: [id], as, why: "the recipient told us" };
    const answer = await fetch(`${url}/api/deliveries/settle`, {
      method: "POST",
      headers: { "content-type": "application/json", ...BEARER },
      body: JSON.stringify(body),
    });
    return (await answer.json()) as Decided;
  };
  // Two operators settle the message at the same time and in different ways. Only one of them may succeed.
  const made = await Promise.all([settle(service.url, "arrived"), settle(service.url, "left")]);
  expect(made.map(({ done }) => done).toSorted((one, other) => one - other)).toEqual([0, 1]);
  expect(await countListed(service, "status=in_doubt")).toBe(0);
  const again = { status: "in_doubt", event_ids: [id], accept_doubles: true };
  expect(await decide(service, again)).toMatchObject({ done: 0, left_count: 1 });
  expect(await stop(service)).toBe(0);
  const restarted = await world.host();
  expect(await countListed(restarted, "status=in_doubt")).toBe(0);
  expect(await settle(restarted.url, "left")).toMatchObject({ done: 0, left_count: 1 });
  const settled = (await exported(world)).filter(({ type }) => type === "DispatchSettled");
  expect(settled.map(({ data }) => [data["channel"], data["why"]])).toEqual([["messaging", "the recipient told us"]]);
  expect(world.sandbox.telegram.messages.total).toBe(0);
});
