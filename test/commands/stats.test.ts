// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { stats } from "../harness/in-process/operation-commands.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { openCommands, timeAt } from "../harness/in-process/commands.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const RUN = { run_id: "r" };
const ANN = { id: "101", username: "ann" };
const BEA = { id: "102", username: "bea" };

function attempted(attempt_id: string, recipient: typeof ANN, told: { variant: string; template?: string }): NewEvent {
  const data = { attempt_id, ...RUN, recipient, text: "Hi", ...told, day: "2025-11-20" };
  return { type: "DirectMessageAttempted", data };
}

function sent(attempt_id: string, recipient: typeof ANN): NewEvent {
  const data = { attempt_id, ...RUN, recipient, message_id: "m", settled_by: "answer" } as const;
  return { type: "DirectMessageSent", data };
}

const HISTORY: readonly NewEvent[] = [
  attempted("1", ANN, { variant: "A" }),
  sent("1", ANN),
  attempted("2", BEA, { variant: "B", template: "0123456789ab" }),
  { type: "DirectMessageInDoubt", data: { attempt_id: "2", ...RUN, recipient: BEA, detail: "time-out" } },
  { type: "DirectMessageReceived", data: { recipient: ANN, message_id: "m2", received_at: timeAt(5) } },
];

test("--by accepts day, hour and campaign only", async () => {
  await using world = await openCommands();
  const fault = await world.run(stats, "--by", "colour\u001b[31m").catch((reason: unknown) => reason);
  expect(fault).toMatchObject({ kind: "usage" });
  expect((fault as Error).message).toBe(
    "option '--by <what>' argument 'colour\ufffd[31m' is invalid. Allowed choices are day, hour, campaign.",
  );
});

test("stats --by campaign counts each campaign, and default what the others leave", async () => {
  await using world = await openCommands();
  const inSpring = ["3", "4"].map((attempt_id): NewEvent => {
    const { type, data } = sent(attempt_id, BEA) as NewEvent<"DirectMessageSent">;
    return { type, data: { ...data, campaign: "spring" } };
  });
  await world.append(STREAMS.outreach, [...HISTORY, ...inSpring]);
  const { out } = await world.run(stats, "--by", "campaign");
  expect(out.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
    ["campaign", "sent", "skipped", "failed"],
    ["default", "1", "0", "0"],
    ["spring", "2", "0", "0"],
    [expect.stringMatching(/^sent 3, skipped 0, failed 0 /)],
    [""],
  ]);
});

const CLICK: NewEvent = clickOf({ short_code: "a" });

test("stats --by shows messages and clicks in the quota's time zone, up to --as-of", async () => {
  await using world = await openCommands(undefined, { QUOTA_TIMEZONE: "Asia/Kolkata" });
  await world.append(STREAMS.outreach, HISTORY);
  await world.append(STREAMS.link("go.example", "a"), [CLICK, CLICK]);
  const hours = (await world.run(stats, "--by", "hour", "--as-of", "6")).out.trimEnd().split("\n");
  expect(hours).toHaveLength(50);
  expect(hours[0]).toMatch(/^hour +sent +skipped +failed +clicks +suspected +bots$/);
  const start = Temporal.Instant.from(timeAt(6)).toZonedDateTimeISO("Asia/Kolkata");
  const hour = `${start.toPlainDate().toString()} ${String(start.hour).padStart(2, "0")}:00`;
  expect(hours.at(-2)?.split(/ {2,}/)).toEqual([hour, "1", "0", "0", "1", "0", "0"]);
  expect(hours.at(-1)).toBe(`(Asia/Kolkata, as of position 6, ${timeAt(6)})`);
  const { out } = await world.run(stats, "--by", "day", "--as-of", "7", "--json");
  const { periods } = JSON.parse(out) as { periods: unknown[] };
  expect(periods).toHaveLength(30);
  const midnight = new Date(start.startOfDay().epochMilliseconds).toISOString();
  const none = { skipped: 0, failed: 0, suspected: 0, bots: 0 };
  expect(periods.at(-1)).toEqual({ start: midnight, sent: 1, clicks: 2, ...none });
});
