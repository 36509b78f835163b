import { expect, test } from "bun:test";
import { openDatabase } from "eventstore-lite/postgres";
import { newDatabase } from "eventstore-lite/testing";
import { writeMixedLog } from "../bench/write-mixed-log.ts";
import { kill, openInstallation, until, type Installation } from "../harness/process.ts";

const EVENTS = process.env["FAULTS_WHOLE"] === "1" ? 1_000_000 : 20_000;

const KEY = { REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64") };

/** Returns the names of the database schemas on the server that belong to a complete or partial log. */
async function schemasOf(url: string): Promise<string[]> {
  const database = openDatabase({ url, connections: 1, name: "test" });
  const rows = await database.run((sql) => sql`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'eventstore%'`);
  await database.close();
  return rows.map(({ nspname }) => String(nspname));
}

async function stateOf(
  world: Installation,
): Promise<{ readonly checked: number; readonly head: { readonly hash: string }; readonly stats: string }> {
  const verified = await world.execute("audit", "verify", "--json");
  expect(verified.code).toBe(0);
  const { checked, head } = JSON.parse(verified.out) as { checked: number; head: { hash: string } };
  return { checked, head, stats: (await world.execute("stats", "--json")).out };
}

test(`${EVENTS} events moved to PostgreSQL and back keep head and stats, even after a kill`, async () => {
  await using world = await openInstallation();
  Object.assign(world.env, KEY);
  await writeMixedLog(world.env["DATABASE_URL"]!.slice("sqlite:".length), EVENTS);
  const before = await stateOf(world);
  expect(before.checked).toBe(EVENTS);
  const server = { DATABASE_URL: await newDatabase() };
  const settings = world.file("next.env", `DATABASE_URL=${server.DATABASE_URL}\n`);

  const killed = world.start(["migrate", settings]);
  await until(
    () => schemasOf(server.DATABASE_URL),
    (schemas) => schemas.length > 0,
  );
  await kill({ process: killed });
  expect((await schemasOf(server.DATABASE_URL)).filter((name) => name === "eventstore")).toEqual([]);
  expect(await stateOf(world)).toEqual(before);

  const seconds: number[] = [];
  const move = async (to: string): Promise<void> => {
    const startedAt = performance.now();
    expect(await world.execute("migrate", to)).toMatchObject({ code: 0 });
    seconds.push((performance.now() - startedAt) / 1000);
  };
  await move(settings);
  Object.assign(world.env, server);
  expect(await stateOf(world)).toEqual(before);
  const back = { DATABASE_URL: `sqlite:${world.directory}/back.sqlite` };
  await move(world.file("back.env", `DATABASE_URL=${back.DATABASE_URL}\n`));
  Object.assign(world.env, back);
  expect(await stateOf(world)).toEqual(before);
  const [there = 0, home = 0] = seconds;
  console.log(
    `${EVENTS} events moved, same head and stats: to PostgreSQL ${there.toFixed(1)} s, back ${home.toFixed(1)} s`,
  );
});
