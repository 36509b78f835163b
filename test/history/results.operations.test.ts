// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { ask, openApp } from "../harness/in-process/app.ts";
import { openCommands, timeAt } from "../harness/in-process/commands.ts";
import { results } from "../harness/in-process/operation-commands.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const RUN = { run_id: "r" };
const ANN = { id: "101", username: "ann" };
const BEA = { id: "102", username: "bea" };

function attempted(
  attempt_id: string,
  recipient: typeof ANN,
  told: { variant: string; template?: string; template_name?: string; links?: string[] },
): NewEvent {
  const data = { attempt_id, ...RUN, recipient, text: "Hi", ...told, day: "2025-11-20" };
  return { type: "DirectMessageAttempted", data };
}

function sent(attempt_id: string, recipient: typeof ANN): NewEvent {
  const data = { attempt_id, ...RUN, recipient, message_id: "m", settled_by: "answer" } as const;
  return { type: "DirectMessageSent", data };
}

const HISTORY: readonly NewEvent[] = [
  attempted("1", ANN, { variant: "A", links: ["go.example/a"] }),
  sent("1", ANN),
  attempted("2", BEA, { variant: "B", template: "0123456789ab", template_name: "Autumn invite" }),
  { type: "DirectMessageInDoubt", data: { attempt_id: "2", ...RUN, recipient: BEA, detail: "time-out" } },
  { type: "DirectMessageReceived", data: { recipient: ANN, message_id: "m2", received_at: timeAt(5) } },
];

const CLICK: NewEvent = clickOf({ short_code: "a" });

test("the results command prints a row per variant and a total, with reply rates", async () => {
  await using world = await openCommands();
  await world.append(STREAMS.outreach, HISTORY);
  await world.append(STREAMS.link("go.example", "a"), [CLICK, clickOf({ short_code: "a", bot: true })]);
  const { code, out } = await world.run(results);
  expect(code).toBe(0);
  const [head, ...rows] = out.split("\n");
  expect(head?.split(/ {2,}/)).toEqual([
    "template",
    "variant",
    "attempted",
    "sent",
    "failed",
    "in doubt",
    "replied",
    "opted out",
    "reply rate",
    "95 % interval",
    "clicks (total)",
    "clicks (unique)",
    "suspected",
    "bots",
    "median first click",
  ]);
  expect(rows.slice(0, 3).map((row) => row.split(/ {2,}/).join(" | "))).toEqual([
    "unknown | A | 1 | 1 | 0 | 0 | 1 | 0 | 100 % | 21 % to 100 % | 1 | 0 | 0 | 1 | -",
    "Autumn invite | B | 1 | 0 | 0 | 1 | 0 | 0 | - | - | - | - | - | - | -",
    "all | 2 | 1 | 0 | 1 | 1 | 0 | 100 % | 21 % to 100 % | 1 | 0 | 0 | 1 | -",
  ]);
  // The two variants are of different templates, so there is no sentence that compares them.
  expect(rows[3]).toStartWith("Clicks are counted by UTC day.");
  expect(rows.slice(4)).toEqual([`(the beginning to now, UTC; as of position 7, ${timeAt(7)})`, ""]);
});

test("the results command says the verdict on each template, and the JSON has the same words", async () => {
  await using world = await openCommands();
  const people = [ANN, BEA].map((person, at) => [
    attempted(`${at}`, person, { variant: at === 0 ? "A" : "B", template: "aaaa", template_name: "Autumn invite" }),
    sent(`${at}`, person),
  ]);
  await world.append(STREAMS.outreach, people.flat());
  const said = "1 of 20 sent with A, 1 with B.";
  const { out } = await world.run(results);
  expect(out).toContain(`\nAutumn invite, 2 messages: Not enough messages yet. ${said}\nClicks are counted`);
  const { verdicts } = JSON.parse((await world.run(results, "--json")).out) as { verdicts: unknown };
  expect(verdicts).toEqual([
    {
      template: "aaaa",
      template_name: "Autumn invite",
      sent: 2,
      outcome: "few",
      winner: { clicked: null, replied: null },
      more_messages: null,
      title: "Not enough messages yet",
      explanation: said,
    },
  ]);
  expect(JSON.parse((await world.run(results, "--by", "run", "--json")).out)).toMatchObject({ verdicts: [] });
});

test("results by basis count clicks of recipients who granted tracking, and say so", async () => {
  await using world = await openCommands();
  await world.append(STREAMS.outreach, HISTORY);
  const { out } = await world.run(results, "--by", "basis", "--from", timeAt(1), "--to", timeAt(1));
  const [head = "", row = ""] = out.split("\n");
  expect(head).toMatch(
    / {2}granted tracking {2}clicked {2}click rate {2}clicks {2}suspected {2}median first click {2}sent before/,
  );
  expect(row.split(/ {2,}/).slice(0, 3)).toEqual(["unknown", "2", "1"]);
  expect(out).toContain("\nOnly clicks of recipients who granted tracking, on their own links, are counted.\n");
  const day = timeAt(1).slice(0, 10);
  expect(out).toEndWith(`(${day} to ${day}, UTC; before: 2025-11-19 to 2025-11-19; as of position 5, ${timeAt(5)})\n`);
});

test("the results command prints JSON and CSV for an earlier position", async () => {
  await using world = await openCommands();
  await world.append(STREAMS.outreach, HISTORY);
  const { out } = await world.run(results, "--by", "variant", "--json", "--as-of", "3");
  const answer = JSON.parse(out) as { rows: object[] };
  expect(answer).toMatchObject({ by: "variant", as_of: { position: 3, time: timeAt(3) }, previous_interval: null });
  const counts = { attempted: 1, failed: 0, replied: 0, opted_out: 0, in_doubt: 0, previous: null };
  expect(answer.rows).toMatchObject([
    {
      template: null,
      variant: "A",
      ...counts,
      sent: 1,
      reply_rate: { rate: 0, low: 0, high: expect.closeTo(0.7935, 4) },
    },
    {
      template: "0123456789ab",
      template_name: "Autumn invite",
      variant: "B",
      ...counts,
      sent: 0,
      reply_rate: null,
      clicks: null,
    },
  ]);
  const csv = (await world.run(results, "--csv", "--as-of", "3")).out.split("\r\n");
  expect(csv).toHaveLength(4);
  expect(csv[0]).toStartWith('\ufeff"template","template_name",');
  expect(csv[1]).toStartWith('"","","A","1","1","0","0","0","0","0.0000",');
});

test("the results command reports a log without messages and refuses invalid options", async () => {
  await using world = await openCommands();
  expect((await world.run(results)).out).toStartWith("no message was attempted, and no link of one was clicked (");
  for (const args of [
    ["--from", "2025-11-21", "--to", "2025-11-20"],
    ["--from", "yesterday"],
    ["--csv", "--json"],
  ])
    expect(await world.run(results, ...args).catch((reason: unknown) => reason)).toMatchObject({ kind: "usage" });
});

const outcome = { attempt_id: "1", run_id: "run-1", recipient: { id: "101", username: "ann" } };
const text = { text: "Hi", template: "aaaa", variant: "A", links: ["go.example/x"], day: "2026-11-20" };

async function openWithMessage(given = {}) {
  const world = await openApp({ tokens: false, ...given });
  await world.append("outreach", { type: "DirectMessageAttempted", data: { ...outcome, ...text } });
  await world.append("outreach", {
    type: "DirectMessageSent",
    data: { ...outcome, message_id: "m", settled_by: "answer" },
  });
  await world.append("link", clickOf({ bot: true }));
  await world.projector.until(3);
  return world;
}

test("GET /social/results counts over all time, or in an interval and the previous one", async () => {
  await using world = await openWithMessage();
  const results = async (query = "") => (await ask(world.app, `/social/results${query}`)).json();
  const clicks = { total: 0, unique: 0, suspected: 0, anonymous: 0, bots: 1, probes: 0 };
  expect(await results()).toMatchObject({
    by: "variant",
    rows: [{ template: "aaaa", variant: "A", sent: 1, clicks, previous: null }],
    as_of: { position: 3, time: world.projector.time ?? "" },
  });
  const today = (world.projector.time ?? "").slice(0, 10);
  expect(await results(`?by=day&from=${today}&to=${today}`)).toMatchObject({
    interval: { from: `${today}T00:00:00.000Z` },
    rows: [{ day: today, sent: 1, clicks }],
    total: { sent: 1, previous: { sent: 0 } },
  });
});

test("GET /social/results answers CSV if the query or Accept requests it", async () => {
  await using world = await openWithMessage();
  const type = async (query: string, accept?: string) => {
    const response = await ask(
      world.app,
      `/social/results${query}`,
      accept === undefined ? {} : { headers: { accept } },
    );
    return response.headers.get("content-type");
  };
  expect(await type("?format=csv")).toBe("text/csv; charset=utf-8");
  expect(await type("", "text/csv")).toBe("text/csv; charset=utf-8");
  expect(await type("?format=json", "text/csv")).toBe("application/json");
  expect(await type("", "*/*")).toBe("application/json");
  const body = await (await ask(world.app, "/social/results?by=link&format=csv")).text();
  expect(body.split("\r\n")[1]).toStartWith('"go.example/x","1","1",');
});

test("GET /social/results refuses an invalid grouping, day or format", async () => {
  await using world = await openWithMessage();
  for (const query of ["by=colour", "from=7", "from=2026-11-21&to=2026-11-20", "to=yesterday", "format=xml"]) {
    const response = await ask(world.app, `/social/results?${query}`);
    expect([query, response.status]).toEqual([query, 422]);
  }
});

test("GET /social/results marks its figures as stale while the log is unavailable", async () => {
  await using world = await openWithMessage({ awaySince: 0 });
  expect(await (await ask(world.app, "/social/results")).json()).toMatchObject({ as_of: { stale: true } });
});
