import { expect, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing";
import { signalRead } from "../../sandbox/x/activity-subscriptions-and-stream.ts";
import { deliver } from "../../sandbox/x/messages.ts";
import { revokeAll } from "../../sandbox/x/tokens.ts";
import {
  authorize,
  BEARER,
  exported,
  kill,
  openInstallation,
  until,
  type Installation,
  type Running,
} from "../harness/process.ts";
import { isWhole } from "../harness/case-count.ts";
import { createPick } from "../outreach/model/step-scheduler.ts";
import { idle } from "./expect-daily-limit-kept.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { expectWhole } from "./expect-whole-log.ts";

/** Number of recipients. Every fourth writes a stop word while a run sends. */
const PEOPLE = isWhole ? 60 : 24;

/** Number of kills of the service, each right after a stop word. */
const KILLS = isWhole ? 6 : 2;

/** Seconds until X accepts a message again after a 429. */
const WINDOW_S = 3;

const DAMAGES = [undefined, undefined, "stream_repeat", "stream_reorder", "stream_cut", "stream_disconnect"] as const;

/** Event of the export, with its time. */
interface Timed {
  readonly type: string;
  readonly time: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Maximum time in ms from a run's last check until X accepts the message, on any machine. */
const ON_THE_WAY_MS_MAX = 1_000;

/** Latest moment of a kill after a stop word, in ms: before, during and after its recording. */
const KILL_MS_MAX = 30;

const SEED = Number(process.env["FAULT_SEED"] ?? Math.ceil(Math.random() * 1_000_000));

test.each(["in a file", "on PostgreSQL"])(
  "a stop word that X signals during a run counts, after kill -9 too, in a log %s",
  async (place) => {
    console.log(`seed ${SEED} (FAULT_SEED=${SEED} chooses the same moments)`);
    const pick = createPick(SEED);
    await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 10_000, keepAliveMs: 200 } });
    const { x, faults } = world.sandbox;
    Object.assign(world.env, {
      X_APP_BEARER_TOKEN: x.appBearer,
      MESSAGE_TEMPLATE: "Hi {{name}}, reply STOP\n---\nHello {{name}}, reply STOP",
      SEND_SPACING_SECONDS: "0",
      IN_DOUBT_SETTLE_SECONDS: "1",
    });
    if (place === "on PostgreSQL")
      Object.assign(world.env, { DATABASE_URL: await newDatabase(), REACHLOG_KEY: "07".repeat(32) });
    await addPeople(world, PEOPLE);
    let service = await world.serve();
    await authorize(service, world.sandbox);
    const open = () => untilTrue(() => x.activity.connections.size > 0);
    const own = [...x.people.values()].find(({ username }) => username === "acme_team")!.id;
    const stopping = Array.from({ length: PEOPLE }, (_, at) => String(7_000_000_001 + at)).filter(
      (_, at) => at % 4 === 3,
    );
    const signalledAt = new Map<string, number>();
    let kills = 0;
    const toPath = (id: string): string => `/with/${id}/messages`;
    // X answers 429 to the message to each of these recipients, so the run waits there.
    for (const id of stopping)
      faults.add({ network: "x", kind: "429", retryAfter: WINDOW_S, path: toPath(id), count: 1 });
    for (const [at, id] of stopping.entries()) {
      await open();
      // If a run is still in progress, the service refuses this request, and that run goes on instead.
      await service.post("/social/run");
      await untilTrue(() => !faults.list().some(({ path }) => path === toPath(id)));
      const kind = DAMAGES[pick(DAMAGES.length)];
      if (kind !== undefined) faults.add({ network: "x", kind, count: 1 });
      if (kind === undefined) signalledAt.set(id, Date.now());
      deliver(x, id, own, "Stop, please");
      if (at % Math.ceil(stopping.length / KILLS) === 0) {
        kills++;
        await Bun.sleep(pick(KILL_MS_MAX));
        await kill(service);
        service = await world.serve();
        await idle(service);
      }
    }
    await idle(service);
    faults.clear();
    await service.post("/social/run");
    await idle(service);

    const suppressed = ((await exported(world)) as unknown as Timed[]).filter(
      ({ type }) => type === "RecipientSuppressed",
    );
    const at = new Map(
      suppressed.map(({ time, data }: Timed) => [(data["recipient"] as { id: string }).id, Date.parse(time)]),
    );
    const late = x.messages.kept.flatMap(({ sender_id, recipient_id, created_at }) => {
      const known = sender_id === own ? at.get(recipient_id) : undefined;
      return known !== undefined && created_at > known ? [created_at - known] : [];
    });
    const live = suppressed.filter(({ data }) => data["via"] === "stream").length;
    const took = [...signalledAt]
      .flatMap(([id, from]) => (at.has(id) ? [at.get(id)! - from] : []))
      .toSorted((one, other) => one - other);
    console.log(
      `stop words signalled ${place} ${stopping.length}: found by the stream ${live}, by reading ${suppressed.length - live}, kills ${kills}, ` +
        `median ${took[Math.floor(took.length / 2)]} ms and at most ${took.at(-1)} ms to the suppression, on the way already ${late.length}; arrived ${arrivals(world).people} of ${PEOPLE}`,
    );
    expect([...at.keys()].toSorted()).toEqual(stopping.toSorted());
    expect(suppressed).toHaveLength(stopping.length);
    expect(Math.max(0, ...late)).toBeLessThan(ON_THE_WAY_MS_MAX);
    expect(arrivals(world).mostToOne).toBe(1);
    await open();
    await expectSeen(world, own, service);
    // No request is made to X after this, so the service can learn only from the signal that the user has revoked the
    // app.
    revokeAll(x);
    await until(
      async () => (await (await service.get("/social/health")).json()) as { authorized: boolean },
      ({ authorized }) => !authorized,
    );
    await expectWhole(world);
  },
);

/**
 * Makes some recipients read our message. Expects that the results of each variant count as many read messages as the
 * sandbox knows.
 */
async function expectSeen(world: Installation, own: string, { get }: Running) {
  const { x } = world.sandbox;
  const books: Record<string, { sent: number; seen: number }> = {};
  const ours = x.messages.kept.filter(({ sender_id }) => sender_id === own);
  for (const [at, { id, recipient_id, text }] of ours.entries()) {
    const book = (books[text.startsWith("Hello") ? "B" : "A"] ??= { sent: 0, seen: 0 });
    book.sent++;
    if (at % 3 === 0) continue;
    book.seen++;
    signalRead(x, recipient_id, own, at % 3 === 1 ? id : undefined);
  }
  const total = Object.values(books).reduce((sum, { seen }) => sum + seen, 0);
  const { rows } = await until(
    async () =>
      (await (await get("/social/results", { headers: BEARER })).json()) as {
        rows: { variant: string; sent: number; seen: number }[];
        total: { seen: number };
      },
    (results) => results.total.seen >= total,
  );
  expect(Object.fromEntries(rows.map(({ variant, sent, seen }) => [variant, { sent, seen }]))).toEqual(books);
}

async function untilTrue(isTrue: () => boolean): Promise<void> {
  await until(
    () => Promise.resolve(isTrue()),
    (found) => found,
  );
}
