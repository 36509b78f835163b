import { expect, test } from "bun:test";
import { startPostgres } from "eventstore-lite/testing";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import { isWhole } from "../harness/case-count.ts";
import { outcomesIn } from "../harness/in-process/dispatch-outcome-events.ts";
import { BEARER, exported, kill, openInstallation, stop, until } from "../harness/process.ts";
import { expectWhole } from "./expect-whole-log.ts";

const CALLERS = 32;
const COUNT = isWhole ? 10_000 : 600;
const KILLS = isWhole ? 10 : 2;
/**
 * Every request whose number is divisible by this is sent a second time, as by a shop that got no answer to the first
 * one.
 */
const REPEATED = 5;

const LINK = { event: "click", domain: "go.example", short_code: "shop", original_url: "https://shop.example/" };
const BROWSER = { user_agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0" };

/** Posts until the service answers with 202, as callers do; returns the answer. */
type PostUntil = (path: string, body: object, more?: Record<string, string>) => Promise<{ readonly id: string }>;

test.each(["SQLite", "PostgreSQL"])(
  "under kill -9 on %s no conversion is lost or doubled, and Meta counts each once",
  async (engine) => {
    await using server = engine === "PostgreSQL" ? await startPostgres({ durable: true }) : undefined;
    await using world = await openInstallation();
    if (server !== undefined) {
      const REACHLOG_KEY = Buffer.alloc(32, 7).toString("base64");
      Object.assign(world.env, { DATABASE_URL: await server.newDatabase(), REACHLOG_KEY });
    }
    let service = await world.serve();
    const postUntil: PostUntil = async (path, body, more = {}) => {
      for (;;) {
        const answer = await service.post(path, body, { ...BEARER, ...more }).catch(() => undefined);
        if (answer?.status === 202) return (await answer.json()) as { id: string };
        // A refusal ends the test, because the service would refuse every repeat too.
        if (answer !== undefined && answer.status < 500) throw new Error(`${answer.status}: ${await answer.text()}`);
        await Bun.sleep(50);
      }
    };
    const clicks = await Promise.all(
      Array.from({ length: 50 }, (_, at) =>
        postUntil("/api/tracking/event", { ...LINK, ...BROWSER }, { "idempotency-key": `click-${at}` }),
      ),
    );
    const ids = new Map<number, string>();
    let next = 0;
    const call = async (): Promise<void> => {
      while (next < COUNT) {
        const number = next++;
        const { id: click_id } = clicks[number % clicks.length]!;
        const sale = { name: "Purchase", click_id, amount: number, currency: "EUR", external_id: `order-${number}` };
        const { id } = await postUntil("/api/tracking/conversion", sale);
        ids.set(number, id);
        if (number % REPEATED === 0) expect((await postUntil("/api/tracking/conversion", sale)).id).toBe(id);
      }
    };
    let kills = 0;
    const killer = async (): Promise<void> => {
      for (; kills < KILLS; kills++) {
        const at = ((kills + 1) * COUNT) / (KILLS + 1);
        await until(
          () => Promise.resolve(ids.size),
          (size) => size >= at,
        );
        await kill(service);
        service = await world.serve();
      }
    };
    await Promise.all([killer(), ...Array.from({ length: CALLERS }, call)]);
    type Health = { readonly channels: Readonly<Record<string, { readonly pending: number }>> };
    await until(
      async () => (await (await service.get("/api/health")).json()) as Health,
      ({ channels }) => channels["ads"]!.pending === 0,
    );

    const events = (await exported(world)) as unknown as Recorded[];
    const recorded = events.filter((event) => event.type === "ConversionRecorded");
    const seen = new Map(recorded.map(({ id, data }) => [data.external_id, id]));
    const lost = [...ids].filter(([number, id]) => seen.get(`order-${number}`) !== id);
    const doubled = recorded.length - seen.size;
    expect({ lost, doubled, recorded: recorded.length }).toEqual({ lost: [], doubled: 0, recorded: COUNT });
    const ended = outcomesIn(events).filter(({ type, data }) => type === "DispatchSucceeded" && data.channel === "ads");
    const sent = new Set(ended.map(({ data }) => data.source));
    expect(recorded.filter(({ position }) => !sent.has(position))).toEqual([]);

    const { meta } = world.sandbox;
    const purchases = meta.events.kept.filter(({ event_name }) => event_name === "Purchase");
    expect(new Set(purchases.map(({ event_id }) => event_id)).size).toBe(COUNT);
    expect(purchases.length).toBe(COUNT);
    const cents = (COUNT * (COUNT - 1)) / 2;
    const atMeta = purchases.reduce((sum, { custom_data }) => sum + Math.round(Number(custom_data!["value"]) * 100), 0);
    const answer = await service.get("/social/results?by=link", { headers: BEARER });
    const { total } = (await answer.json()) as { total: { conversions: { total: number; values: object[] } } };
    const value = `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, "0")}`;
    expect(total.conversions).toMatchObject({ total: COUNT, values: [{ currency: "EUR", value }] });
    expect(atMeta).toBe(cents);
    await stop(service);
    await expectWhole(world);
    console.log(
      `${engine}: ${COUNT} conversions from ${CALLERS} callers under ${KILLS} kills, of which 0 lost and 0 doubled; Meta received ${meta.accepted} events and counts ${purchases.length} purchases`,
    );
  },
);
