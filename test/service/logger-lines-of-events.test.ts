// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { createEventLog, type NewEvent } from "../../src/log/event-log.ts";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { createLogger } from "../../src/platform/logger.ts";
import { logChanges } from "../../src/service/service.ts";
import { openApp } from "../harness/in-process/app.ts";

const counts = { sent: 2, skipped: 1, failed: 0, in_doubt: 0 };
const suspended = {
  channel: "chat",
  network: "Slack",
  detail: "channel_is_archived",
  credential: "a keyed hash",
} as const;

test("a log line names the request that caused its event, and the trace", async () => {
  await using world = await openApp();
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  using _logging = logChanges(
    world.projector,
    createLogger("info", write, () => 0),
  );
  const trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
  const { last } = await createEventLog(world.store, makeId).append(
    "outreach",
    [{ type: "RunStarted", data: { run_id: "run-1", dry_run: false } }],
    { caller: "ops", request_id: "r-1", traceparent: `00-${trace_id}-00f067aa0ba902b7-01` },
  );
  await world.projector.until(last);
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { run_id: "run-1", request_id: "r-1", trace_id },
  ]);
});

test.each<[NewEvent, object]>([
  [
    { type: "ChannelSuspended", data: suspended },
    {
      level: "warn",
      message: "a channel is suspended",
      channel: "chat",
      network: "Slack",
      detail: "channel_is_archived",
    },
  ],
  [
    { type: "ChannelResumed", data: { channel: "chat", why: "by_hand" } },
    { level: "info", message: "a channel is resumed", channel: "chat", why: "by_hand" },
  ],
  [
    { type: "RunStarted", data: { run_id: "run-1", dry_run: false } },
    { level: "info", message: "a run has started", run_id: "run-1", dry_run: false },
  ],
  [
    { type: "RunFinished", data: { run_id: "run-1", reason: "completed", ...counts } },
    { level: "info", message: "a run has ended", run_id: "run-1", reason: "completed", ...counts },
  ],
  [
    { type: "DryRunFinished", data: { run_id: "run-1", reason: "completed", would_send: 1, would_skip: 2 } },
    { level: "info", message: "a dry run has ended", run_id: "run-1", reason: "completed" },
  ],
  [
    { type: "RunAbandoned", data: { run_id: "run-1", ...counts } },
    { level: "warn", message: "a run has ended because its process died", run_id: "run-1", ...counts },
  ],
])("the event is logged: %j", async (newEvent, line) => {
  await using world = await openApp();
  const lines: string[] = [];
  const logger = createLogger(
    "info",
    (written) => void lines.push(written),
    () => 0,
  );
  using _logging = logChanges(world.projector, logger);
  await world.append("outreach", newEvent);
  await world.append("requests", { type: "MessageRequested", data: { text: "of which nothing is said" } });
  expect(lines.map((one) => JSON.parse(one) as unknown)).toEqual([
    { time: "1970-01-01T00:00:00.000Z", position: 1, ...line },
  ]);
});
