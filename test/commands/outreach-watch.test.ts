// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { RunState } from "../../projections/current-run.ts";
import { outreach } from "../../src/commands/outreach.ts";
import { runCommand } from "../../src/commands/shared/command.ts";
import type { Terminal } from "../../src/commands/shared/terminal-answers-and-exit-codes.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { openCommands, timeAt, type CommandHarness } from "../harness/in-process/commands.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { formatStatus } from "../../src/commands/outreach/watch.ts";
import { startStatusLine } from "../../src/commands/shared/progress.ts";

const ANN = { id: "101", username: "ann" };
const OUTCOME = { attempt_id: "1", run_id: "run-1", recipient: ANN };
const STARTED: NewEvent = { type: "RunStarted", data: { run_id: "run-1", dry_run: false } };
const ATTEMPTED: NewEvent = {
  type: "DirectMessageAttempted",
  data: { ...OUTCOME, text: "Hi", variant: "A", day: "2025-11-20" },
};
const SENT: NewEvent = { type: "DirectMessageSent", data: { ...OUTCOME, message_id: "m", settled_by: "answer" } };
const USAGE = { sends: 1, users: 1, followers: 0, posts: 0, messages: 0, usd: 0.025 };
const COUNTS = { sent: 1, skipped: 0, failed: 0, in_doubt: 0 };
const FINISHED: NewEvent = {
  type: "RunFinished",
  data: { run_id: "run-1", reason: "completed", ...COUNTS, usage: USAGE },
};

/** Runs `outreach watch` and collects its output. `said` resolves once the output matches a pattern. */
function watching(
  world: CommandHarness,
  { args = [], interactive = false }: { args?: string[]; interactive?: boolean } = {},
) {
  const interrupted = new AbortController();
  let [out, err] = ["", ""];
  let heard = (): void => {};
  const terminal: Terminal = {
    env: world.env,
    out: (text) => {
      out += text;
      heard();
    },
    err: (text) => {
      err += text;
      heard();
    },
    interactive,
    signal: interrupted.signal,
  };
  return {
    ended: runCommand(outreach, ["watch", ...args], terminal),
    interrupt: () => interrupted.abort(130),
    out: () => out,
    err: () => err,
    said: (wanted: RegExp): Promise<void> =>
      new Promise((resolve) => {
        heard = () => {
          if (wanted.test(out + err)) resolve();
        };
        heard();
      }),
  };
}

test("a run in progress is followed to its end, without the events of an import", async () => {
  await using world = await openCommands();
  await world.append(STREAMS.outreach, [STARTED, ATTEMPTED, SENT]);
  const watch = watching(world);
  await watch.said(/started/);
  const skipped: NewEvent = {
    type: "DirectMessageSkipped",
    data: { run_id: "run-1", recipient: { username: "bea\u001b[2J" }, reason: "no_consent" },
  };
  const imported: NewEvent = addedOf(ANN, { basis: "none" });
  await world.append(STREAMS.outreach, [skipped, imported, FINISHED]);
  expect(await watch.ended).toBe(0);
  expect(watch.out()).toBe(`run run-1, started ${timeAt(1)}: 1 sent, 0 skipped, 0 failed, 0 in doubt so far
${timeAt(4)} run run-1 skipped @bea\ufffd[2J, no consent on record
${timeAt(6)} ended, completed: 1 sent, 0 skipped, 0 failed, 0 in doubt; cost at most 0.03 USD
`);
  expect(watch.err()).toBe("");
});

test("without a run, watch waits for the next one and shows only its events", async () => {
  await using world = await openCommands();
  await world.append(STREAMS.outreach, [STARTED, FINISHED]);
  const watch = watching(world);
  await watch.said(/no run is in progress; waiting for the next one\n/);
  const suppressed: NewEvent = { type: "RecipientSuppressed", data: { recipient: ANN, reason: "by_hand" } };
  const dry: NewEvent = { type: "RunStarted", data: { run_id: "run-2", dry_run: true } };
  const done: NewEvent = {
    type: "DryRunFinished",
    data: { run_id: "run-2", reason: "daily_limit_reached", would_send: 2, would_skip: 1 },
  };
  await world.append(STREAMS.outreach, [suppressed, dry, done]);
  expect(await watch.ended).toBe(0);
  expect(watch.out()).toBe(`no run is in progress; waiting for the next one
dry run run-2, started ${timeAt(4)}: 0 sent, 0 skipped, 0 failed, 0 in doubt so far
${timeAt(5)} ended, daily limit reached: it would send to 2 and skip 1
`);
});

test("--json prints one event per line and nothing else", async () => {
  await using world = await openCommands();
  await world.append(STREAMS.outreach, [STARTED]);
  const watch = watching(world, { args: ["--json"] });
  await watch.said(/started/);
  const abandoned: NewEvent = { type: "RunAbandoned", data: { run_id: "run-1", ...COUNTS } };
  await world.append(STREAMS.outreach, [ATTEMPTED, SENT, abandoned]);
  expect(await watch.ended).toBe(0);
  const events = watch
    .out()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { type: string; words: string });
  expect(events.map(({ type }) => type)).toEqual(["DirectMessageAttempted", "DirectMessageSent", "RunAbandoned"]);
  expect(events[1]?.words).toContain("message m was sent to @ann (101)");
});

test("an interrupted watch exits with 130 and clears the status line", async () => {
  await using world = await openCommands();
  await world.append(STREAMS.outreach, [STARTED]);
  const watch = watching(world, { interactive: true });
  await watch.said(/started[^]*0 sent/);
  watch.interrupt();
  expect(await watch.ended).toBe(130);
  expect(watch.err()).toEndWith("\r\u001b[K");
});

test("the status line on a terminal shows what the run waits for", async () => {
  await using world = await openCommands();
  await world.append(STREAMS.outreach, [STARTED]);
  const watch = watching(world, { interactive: true });
  await watch.said(/started/);
  const until = new Date(Date.now() + 3_600_000).toISOString();
  await world.append(STREAMS.outreach, [{ type: "RunPaused", data: { run_id: "run-1", reason: "pace", until } }]);
  await watch.said(/waits until/);
  await world.append(STREAMS.outreach, [FINISHED]);
  expect(await watch.ended).toBe(0);
  expect(watch.err()).toMatch(/waits until \d\d:\d\d:\d\dZ \((?:1:00:00|59:\d\d)\) to spread the messages/);
  expect(watch.out()).not.toContain("waits until");
});

describe("the status of a run", () => {
  const run: RunState = {
    run_id: "r",
    dry_run: false,
    started_at: "2026-11-20T10:00:00.000Z",
    ...COUNTS,
    places: 1,
    withdrawn: 0,
    waiting: null,
    stop_requested_at: null,
    requested: [],
  };
  const now = Date.parse("2026-11-20T10:00:00.000Z");
  test("shows the requested stop", () => {
    const stopping = { ...run, stop_requested_at: "2026-11-20T10:00:00.000Z" };
    expect(formatStatus(stopping, now)).toBe("1 sent, 0 skipped, 0 failed, 0 in doubt; asked to stop");
  });

  test.each([
    ["2026-11-20T10:00:00.100Z", "10:00:00Z (0:01)"],
    ["2026-11-20T10:01:02.000Z", "10:01:02Z (1:02)"],
    ["2026-11-20T11:02:03.000Z", "11:02:03Z (1:02:03)"],
    // The time until which the run waits has passed, but the log has no later event of the run yet. The status still
    // shows the wait, with 0:00 left.
    ["2026-11-20T09:59:00.000Z", "09:59:00Z (0:00)"],
  ])("counts down to %s", (until, shown) => {
    const waiting = { reason: "rate_limited", until } as const;
    expect(formatStatus({ ...run, waiting }, now)).toBe(
      `1 sent, 0 skipped, 0 failed, 0 in doubt; waits until ${shown} because X asks to`,
    );
  });

  test("shows the counts of a working run, or that there is no run", () => {
    expect(formatStatus(run, now)).toBe("1 sent, 0 skipped, 0 failed, 0 in doubt");
    expect(formatStatus(null, now)).toBe("no run is in progress");
  });
});

describe("the status line", () => {
  test("is redrawn in place, below newly printed lines", () => {
    let drawn = "";
    let step = 1;
    const terminal = { interactive: true, err: (text: string) => void (drawn += text) } as Terminal;
    {
      using status = startStatusLine(terminal, () => `step ${step}`);
      step = 2;
      status.above(() => void (drawn += "said\n"));
    }
    const line = (text: string) => `\r\u001b[K\u001b[?7l${text}\u001b[?7h`;
    expect(drawn).toBe(`${line("step 1")}\r\u001b[Ksaid\n${line("step 2")}\r\u001b[K`);
  });

  test("is not drawn without a terminal", () => {
    let drawn = "";
    const terminal = { interactive: false, err: (text: string) => void (drawn += text) } as Terminal;
    using status = startStatusLine(terminal, () => "step");
    status.above(() => void (drawn += "said\n"));
    expect(drawn).toBe("said\n");
  });
});
