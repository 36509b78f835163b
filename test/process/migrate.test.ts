// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing";
import { exported, openInstallation, stop, type ListeningService } from "../harness/process.ts";

const KEY = { REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64") };

const CLICK = {
  event: "click",
  domain: "go.example",
  short_code: "welcome",
  original_url: "https://shop.example/",
  user_agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
};

const click = async ({ post }: ListeningService, key: string): Promise<unknown> => {
  const answer = await post("/api/tracking/event", CLICK, { "idempotency-key": key });
  expect(answer.status).toBe(202);
  return answer.json();
};

test("a moved log keeps events and idempotency keys, and is not moved while a service runs", async () => {
  await using world = await openInstallation();
  Object.assign(world.env, KEY, { CHAT_WEBHOOK_URL: "", TELEGRAM_BOT_TOKEN: "", TELEGRAM_CHAT_ID: "" });
  const file = { DATABASE_URL: world.env["DATABASE_URL"]! };
  const server = { DATABASE_URL: await newDatabase() };
  const move = (to: Record<string, string>) =>
    world.command("migrate", world.file("next.env", `DATABASE_URL=${to["DATABASE_URL"]}\n`));

  const first = await world.host();
  const answered = await click(first, "one");
  expect(await move(server)).toMatchObject({ code: 75, err: expect.stringContaining("reachlog serve, pid") });
  await stop(first);
  expect(await move(server)).toMatchObject({ code: 0 });
  const before = await exported(world);

  Object.assign(world.env, server);
  const second = await world.host();
  expect(await click(second, "one")).toEqual(answered);
  await click(second, "two");
  const elsewhere = { DATABASE_URL: `${file.DATABASE_URL}.moved` };
  expect(await move(elsewhere)).toMatchObject({ code: 75, err: expect.stringContaining(second.url) });
  await stop(second);
  expect(await move(elsewhere)).toMatchObject({ code: 0 });
  const there = await exported(world);
  expect(there.slice(0, before.length)).toEqual(before);

  Object.assign(world.env, elsewhere);
  expect(await exported(world)).toEqual(there);
  const third = await world.host();
  expect(await click(third, "one")).toEqual(answered);
  await click(third, "three");
  expect(await stop(third)).toBe(0);
  expect(await world.command("audit", "verify")).toMatchObject({ code: 0 });
});
