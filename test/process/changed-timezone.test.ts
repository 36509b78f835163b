// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { dayIn } from "../../src/outreach/quota-day.ts";
import { authorize, exported, openInstallation, stop } from "../harness/process.ts";

const DAY_MS = 24 * 3_600_000;

/** Time zones far ahead of UTC and far behind it. At any time, one of them has another date than UTC. */
const FAR_ZONES = ["Pacific/Kiritimati", "Pacific/Pago_Pago"];

test("a changed QUOTA_TIMEZONE gives no second quota, and all answers say when it resets", async () => {
  await using world = await openInstallation();
  Object.assign(world.env, { DAILY_LIMIT: "2", QUOTA_TIMEZONE: "UTC" });
  const csv = "username,name,basis\nada_builds,Ada,opt_in\ngrace_codes,Grace,opt_in\nlinus_k,Linus,opt_in\n";
  await world.command("recipients", "import", world.file("people.csv", csv));
  const first = await world.host();
  await authorize(first, world.sandbox);
  const sent = await (await first.post("/social/run", undefined, { prefer: "wait=300" })).json();
  expect(sent).toMatchObject({ reason: "daily_limit_reached", sent: 2 });
  await stop(first);

  const now = Date.now();
  world.env["QUOTA_TIMEZONE"] = FAR_ZONES.find((zone) => dayIn(zone, now) !== dayIn("UTC", now)) ?? "";
  const service = await world.host();
  const asked = Date.now();
  const refused = await service.post("/social/run", undefined, { prefer: "wait=300" });
  expect(refused.status).toBe(429);

  // After a change of the time zone, the quota's first place is free again 24 hours after its message was confirmed.
  const [outcome] = (await exported(world)).filter(({ type }) => type === "DirectMessageSent");
  const back = Date.parse((outcome as unknown as { time: string }).time) + DAY_MS;
  const resets_at = new Date(back).toISOString();
  const { quota } = (await (await service.get("/social/health")).json()) as { quota: unknown };
  expect(quota).toEqual({ limit: 2, used: 2, remaining: 0, resets_at });
  const seconds = Number(refused.headers.get("retry-after"));
  expect(seconds).toBeLessThanOrEqual(Math.ceil((back - asked) / 1_000));
  expect(seconds).toBeGreaterThanOrEqual(Math.ceil((back - Date.now()) / 1_000));
  expect(refused.headers.get("ratelimit")).toMatch(/^"dm-day";r=0;t=\d+$/);
  const told = JSON.parse((await world.command("quota", "--json")).out) as unknown;
  expect(told).toMatchObject({ counted: "last_24_hours", used: 2, remaining: 0, resets_at });
  expect(world.sandbox.x.accepted.size).toBe(2);
});
