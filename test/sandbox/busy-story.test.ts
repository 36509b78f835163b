// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { verify } from "../../src/commands/audit/verify.ts";
import { replay } from "../../src/commands/replay.ts";
import { loadConfig } from "../../src/config/config.ts";
import { openReachlog } from "../../src/service/open-reachlog.ts";
import { makeBusyHistory } from "../../sandbox/demo-busy-history.ts";
import { createMovedClock } from "../../sandbox/demo-history.ts";
import { startSandbox } from "../../sandbox/sandbox.ts";
import { capture } from "../harness/capture-command.ts";
import { openBusyLog, writeBusyLog } from "../harness/in-process/demo-history-log.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";

const NOW = Date.parse("2026-11-26T11:42:00.000Z");
const DAY_MS = 86_400_000;

/**
 * Numbers of clicks in the demo's story, and in the same story compressed to twenty minutes, where more clicks come
 * soon after a message.
 */
const CLICKS = { clicks: 1_394, bots: 1_552, suspected: 216 };
const COMPRESSED_CLICKS = { clicks: 1_375, bots: 1_542, suspected: 317 };

/** Returns figures of the log as they are at `now`. */
async function figuresOf(env: Record<string, string>, now: number) {
  await using reachlog = await openReachlog(
    loadConfig(env, () => ""),
    { clock: () => now },
  );
  const { projector, eventLog } = reachlog;
  const { started, count } = projector.state("runs");
  const { chat, messaging, ads } = projector.state("deliveries");
  const [first] = await Array.fromAsync(eventLog.store.read({ limit: 1 }));
  return {
    runs: count,
    ends: Object.groupBy(
      [...started.values()].map(({ end }) => end?.reason ?? "none"),
      (reason) => reason,
    ),
    clicks: projector.state("suspected").all,
    links: projector.state("links").shared.size,
    dead: [ads.dead, chat.dead, messaging.dead],
    inDoubt: [ads.in_doubt, chat.in_doubt, messaging.in_doubt],
    pending: [ads, chat, messaging].map(({ lanes }) => lanes.clicks.pending + lanes.direct.pending),
    openMessages: projector.state("run").open.size,
    isAuthorized: projector.state("account").authorized,
    held: [...projector.state("contacts").people.values()].filter(({ held }) => held).length,
    recipients: projector.state("contacts").people.size,
    days: (now - Date.parse(first?.time ?? "")) / DAY_MS,
  };
}

describe("the demo's busy log", () => {
  test("has 36 runs, 3,000 clicks, and everything that an operator has to decide", async () => {
    using busy = await writeBusyLog(NOW);
    const { ends, clicks, days, ...figures } = await figuresOf(busy.env, NOW);
    expect(figures).toEqual({
      runs: 36,
      links: 12,
      dead: [0, 25, 0],
      inDoubt: [0, 0, 6],
      pending: [0, 0, 42],
      openMessages: 1,
      isAuthorized: false,
      held: 1,
      recipients: 640,
    });
    expect(Object.entries(ends).map(([reason, runs]) => [reason, runs.length])).toEqual([
      ["limit_reached", 34],
      ["stopped", 1],
      ["daily_limit_reached", 1],
      ["abandoned", 1],
    ]);
    expect(clicks).toEqual(CLICKS);
    expect(Math.round(days)).toBe(41);
    const verified = await capture(verify, [], { env: busy.env });
    expect([verified.code, verified.out]).toEqual([0, expect.stringContaining("the chain is whole")]);
    const replayed = await capture(replay, [], { env: busy.env });
    expect(replayed.out.trim().split("\n")).toSatisfy((lines: string[]) =>
      lines.every((line) => line.endsWith("no difference")),
    );
  });

  test("is the same each time, and fits into twenty minutes of a new day", async () => {
    const now = Date.parse("2026-11-26T00:20:00.000Z");
    using busy = await writeBusyLog(now, now % DAY_MS);
    const { runs, clicks, dead, days } = await figuresOf(busy.env, now);
    expect(days * DAY_MS).toBeLessThanOrEqual(now % DAY_MS);
    expect({ runs, dead, clicks }).toEqual({ runs: 36, dead: [0, 25, 0], clicks: COMPRESSED_CLICKS });
  });

  test("gives the sandbox the same people and messages, and one account that an operator authorizes again", async () => {
    using folder = temporaryFolder();
    const clock = createMovedClock();
    await using sandbox = await startSandbox({ clock: clock.now });
    const env = { DATABASE_URL: `sqlite:${folder.file("log.sqlite")}` };
    await makeBusyHistory((now) => openBusyLog(env, now), sandbox, clock);
    const people = [...sandbox.x.people.values()];
    const accounts = people.filter(({ can_authorize }) => can_authorize === true);
    expect(accounts.map(({ username }) => username)).toEqual(["northwind_labs"]);
    const ours = sandbox.x.messages.kept.filter(({ sender_id }) => sender_id === accounts[0]?.id);
    // The story leaves one message in doubt. The simulated X did receive that message, so the 466 messages include it.
    expect(ours).toHaveLength(466);
    expect(sandbox.faults.list()).toMatchObject([{ network: "telegram", kind: "429" }]);
    expect(Math.abs(clock.now() - Date.now())).toBeLessThan(60_000);
  });
});
