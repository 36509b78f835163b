// These tests call the code directly.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { DataOf, Recorded } from "../../events/event-types-and-codec.ts";
import { conversions } from "../../projections/conversion-counts.ts";
import { results } from "../../projections/message-outcomes-and-reactions.ts";
import { runs } from "../../projections/runs.ts";
import { visits } from "../../projections/link-clicks-by-day.ts";
import { resultsAsCsv, resultsAsJson } from "../../src/history/results-format.ts";
import { createResults } from "../../src/history/results.ts";
import { GROUPINGS, shareOut } from "../../src/history/results-figures.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { parseAmount } from "../../src/platform/money.ts";
import { countCases } from "../harness/case-count.ts";

const LINKS = ["a", "b", "c"];
const CODES = ["own0", "own1", "own2", "own3"];
const CURRENCIES = ["EUR", "JPY", "BHD"];
const RUNS = ["run-0", "run-1", "run-2"];

function fold(newEvents: readonly NewEvent[]) {
  const states = {
    conversions: conversions.initial(),
    results: results.initial(),
    runs: runs.initial(),
    visits: visits.initial(),
  };
  for (const [index, { type, data }] of newEvents.entries()) {
    const time = new Date(Date.UTC(2026, 10, 20) + index * 3_600_000).toISOString();
    const event = { type, data, position: index + 1, time } as unknown as Recorded;
    conversions.evolve(states.conversions, event);
    results.evolve(states.results, event);
    runs.evolve(states.runs, event);
    visits.evolve(states.visits, event);
  }
  return states;
}

const message = fc.record({
  run: fc.nat(1),
  variant: fc.constantFrom("A", "B"),
  links: fc.subarray(LINKS),
  hasCode: fc.boolean(),
});
const sale = fc.record({
  type: fc.constantFrom("ConversionRecorded" as const, "ConversionReversed" as const),
  amount: fc.integer({ min: 0, max: 999_999_999_999_999 }),
  currency: fc.constantFrom(...CURRENCIES, undefined),
  day: fc.integer({ min: 10, max: 28 }),
  link: fc.constantFrom(...LINKS, "unknown", undefined),
  isAttributed: fc.boolean(),
  code: fc.constantFrom(...CODES, undefined),
});
const usd = fc.nat(5_000_000).map((millionths) => millionths / 1_000_000);

function toEvents(sent: readonly (typeof message extends fc.Arbitrary<infer One> ? One : never)[]): NewEvent[] {
  return sent.flatMap(({ run, variant, links, hasCode }, at) => {
    const about = {
      attempt_id: `attempt-${at}`,
      run_id: RUNS[run]!,
      recipient: { id: `${at}`, username: `user_${at}` },
    };
    const own = hasCode && at < CODES.length && links.length > 0;
    const personal_links = own ? [{ code: CODES[at]!, link: `go.example/${links[0]}` }] : [];
    const named = {
      links: links.map((link) => `go.example/${link}`),
      personal_links,
      template: "t",
      source: "list" as const,
    };
    return [
      { type: "DirectMessageAttempted", data: { ...about, ...named, text: "Hi", variant, day: "2026-11-20" } },
      { type: "DirectMessageSent", data: { ...about, message_id: `m${at}`, settled_by: "answer" } },
    ] satisfies NewEvent[];
  });
}

function toSale(one: typeof sale extends fc.Arbitrary<infer One> ? One : never): NewEvent {
  const { type, amount, currency, day, link, isAttributed, code } = one;
  const data: DataOf<"ConversionRecorded"> = {
    name: "Purchase",
    occurred_at: `2026-11-${day}T10:00:00.000Z`,
    channels: [],
    ...(currency === undefined ? {} : { currency, value: type === "ConversionRecorded" ? amount : -amount }),
    ...(link === undefined ? {} : { domain: "go.example", short_code: link }),
    ...(isAttributed && link !== undefined ? { click: 1 } : {}),
    ...(code === undefined ? {} : { code }),
  };
  return { type, data };
}

/** Returns the event of a signal, or of the reading of a gap between signals, which cost this many dollars. */
function toCharge(usd: number, at: number): NewEvent {
  const usage = { sends: 0, users: 0, followers: 0, posts: 0, messages: 1, usd };
  return at % 2 === 0
    ? { type: "SignalsReceived", data: { messages: 1, chats: 0, usage } }
    : { type: "InboxRead", data: { messages: 1, usage } };
}

test("in every grouping, the rows and the part outside of them sum exactly to the total, which is that of the log", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(message, { maxLength: 8 }),
      fc.array(sale, { maxLength: 20 }),
      fc.tuple(usd, usd, usd),
      fc.array(usd, { maxLength: 60 }),
      async (sent, sales, costs, signals) => {
        const began = RUNS.map(
          (run_id) => ({ type: "RunStarted", data: { run_id, dry_run: false } }) as unknown as NewEvent,
        );
        const ended = RUNS.map((run_id, at) => {
          const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };
          return { type: "RunFinished", data: { run_id, ...counts, usage: { usd: costs[at] } } } as unknown as NewEvent;
        });
        const states = fold([...began, ...toEvents(sent), ...ended, ...sales.map(toSale), ...signals.map(toCharge)]);
        for (const by of GROUPINGS) {
          const table = await createResults(states, by, { from: undefined, to: undefined });
          const json = resultsAsJson(by, table);
          expect(sumUp([...json.rows, json.other])).toEqual(sumUp([json.total]));
          expect(sumUp([json.total])).toEqual({
            conversions: sales.filter(({ type }) => type === "ConversionRecorded").length,
            reversed: sales.filter(({ type }) => type === "ConversionReversed").length,
            millionths: [...costs, ...signals].reduce((sum, cost) => sum + Math.round(cost * 1_000_000), 0),
            values: valuesIn(sales),
          });
          expect(resultsAsCsv({ ...json, verdicts: [], cost_usd: null } as never)).toContain("conversion_value");
        }
      },
    ),
    { numRuns: countCases(500) },
  );
});

type Worth = Awaited<ReturnType<typeof createResults>>["other"];

/** Sums up rows in smallest units, as big integers. */
function sumUp(rows: readonly Worth[]) {
  const values: Record<string, bigint> = {};
  let [all, reversed, millionths] = [0, 0, 0];
  for (const { conversions: found, cost_usd } of rows) {
    all += found.total;
    reversed += found.reversed;
    millionths += Number((cost_usd ?? "0.000000").replace(".", ""));
    for (const { currency, value } of found.values)
      values[currency] = (values[currency] ?? 0n) + BigInt(value.replace(".", ""));
  }
  return { conversions: all, reversed, millionths, values: nonZero(values) };
}

function valuesIn(sales: readonly { type: string; amount: number; currency: string | undefined }[]) {
  const values: Record<string, bigint> = {};
  for (const { type, amount, currency } of sales) {
    if (currency === undefined) continue;
    values[currency] = (values[currency] ?? 0n) + BigInt(type === "ConversionRecorded" ? amount : -amount);
  }
  return nonZero(values);
}

const nonZero = (values: Record<string, bigint>) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== 0n));

test("a cost is shared out exactly, in parts that differ by a millionth", () => {
  fc.assert(
    fc.property(fc.nat(1_000_000_000_000), fc.integer({ min: 1, max: 9_000 }), (cost, parts) => {
      const shares = shareOut(cost, parts);
      expect(shares.reduce((sum, share) => sum + share, 0)).toBe(cost);
      expect(new Set(shares).size).toBeLessThanOrEqual(2);
    }),
  );
});

test("values and costs are shown by currency, for each message and for each conversion", async () => {
  const sales = [2490, 1000].map((value): NewEvent => {
    const link = { domain: "go.example", short_code: "a", click: 1, channels: [] };
    const data = { name: "Purchase", occurred_at: "2026-11-20T10:00:00.000Z", ...link, value, currency: "EUR" };
    return { type: "ConversionRecorded", data };
  });
  const messages = toEvents([0, 1, 2].map(() => ({ run: 0, variant: "A" as const, links: ["a"], hasCode: false })));
  const run = [
    { type: "RunStarted", data: { run_id: "run-0", dry_run: false } },
    ...messages,
    { type: "RunFinished", data: { run_id: "run-0", usage: { usd: 0.045 } } },
  ] as unknown as NewEvent[];
  const { rows } = await createResults(fold([...run, ...sales]), "variant", { from: undefined, to: undefined });
  expect(rows[0]?.figures).toMatchObject({
    conversions: { total: 2, reversed: 0, values: [{ currency: "EUR", value: "34.90", per_message: "11.6333" }] },
    cost_usd: "0.045000",
    cost_per_conversion_usd: "0.022500",
  });
  expect(parseAmount("34.90", "EUR")).toBe(3490);
});

test("dry runs cost the day on which they started, and no message", async () => {
  const counts = { reason: "completed", would_send: 2, would_skip: 0, usage: { usd: 1.19 } };
  const states = fold([
    { type: "RunStarted", data: { run_id: "dry-0", dry_run: true } },
    { type: "DryRunFinished", data: { run_id: "dry-0", ...counts } },
  ] as unknown as NewEvent[]);
  const byDay = await createResults(states, "day", { from: undefined, to: undefined });
  expect(byDay.rows.map(({ figures }) => figures.cost_usd)).toEqual(["1.190000"]);
  const { rows, other, total } = await createResults(states, "run", { from: undefined, to: undefined });
  expect([rows, other.cost_usd, total.figures.cost_usd]).toEqual([[], "1.190000", "1.190000"]);
});

test("signals cost the day on which they came, and no run", async () => {
  const read: NewEvent = { type: "InboxRead", data: { run_id: "run-0", messages: 5 } };
  // The events are an hour apart. The first of the three charges is still on the first day, the other two are on the
  // next day.
  const states = fold([...Array.from({ length: 23 }, () => read), ...[0.01, 0.02, 0.04].map(toCharge)]);
  const within = async (day: string) => {
    const from = Date.parse(day);
    const table = await createResults(states, "day", { from, to: from + 86_400_000 });
    return table.rows.map(({ group, figures }) => [group.day, figures.cost_usd]);
  };
  expect(await within("2026-11-20")).toEqual([["2026-11-20", "0.010000"]]);
  expect(await within("2026-11-21")).toEqual([["2026-11-21", "0.060000"]]);
  const { rows, other, total } = await createResults(states, "variant", { from: undefined, to: undefined });
  expect([rows, other.cost_usd, total.figures.cost_usd]).toEqual([[], "0.070000", "0.070000"]);
});
