// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import type { Basis } from "../../events/outreach.ts";
import { results } from "../../projections/message-outcomes-and-reactions.ts";
import { noVisits, visits } from "../../projections/link-clicks-by-day.ts";
import { conversions } from "../../projections/conversion-counts.ts";
import { runs } from "../../projections/runs.ts";
import { parseInterval, type Interval } from "../../src/projector/parse-day-range.ts";
import { createResults, RESULT_ROWS_MAX, sumMessages } from "../../src/history/results.ts";
import { GROUPINGS, type Figures, type Grouping } from "../../src/history/results-figures.ts";
import { describeMergedDays, nameMember, resultsAsCsv, resultsAsJson } from "../../src/history/results-format.ts";
import { ServiceError } from "../../src/platform/service-error.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

interface Sent {
  readonly run?: string;
  readonly template?: string;
  readonly template_name?: string;
  readonly variant?: string;
  readonly links?: readonly string[];
  readonly code?: string;
  readonly basis?: Basis;
}

type Told = readonly [time: string, newEvent: NewEvent];

let made = 0;

/** Events of a message that the network accepted a second after its intent. */
function message(time: string, recipientId: string, sent: Sent = {}): Told[] {
  const { run = "run-1", template = "aaaa", template_name, variant = "A", links = [], code, basis } = sent;
  const attempt_id = `attempt-${++made}`;
  const outcome = { attempt_id, run_id: run, recipient: { id: recipientId, username: `user_${recipientId}` } };
  const origin = basis === undefined ? {} : { basis, source: "list" as const };
  const personal_links = [{ code: code ?? "", link: links[0] ?? "" }];
  const own = code === undefined ? {} : { personal_links };
  const name = template_name === undefined ? {} : { template_name };
  const text = { text: "Hi", template, ...name, variant, links: [...links], day: "2026-11-20" };
  const later = new Date(Date.parse(time) + 1_000).toISOString();
  return [
    [time, { type: "DirectMessageAttempted", data: { ...outcome, ...text, ...origin, ...own } }],
    [later, { type: "DirectMessageSent", data: { ...outcome, message_id: "m", settled_by: "answer" } }],
  ];
}

const reply = (time: string, id: string): Told => [
  time,
  { type: "DirectMessageReceived", data: { recipient: { id }, message_id: "r", received_at: time } },
];

const click = (time: string, short_code: string, more: Partial<Parameters<typeof clickOf>[0]> = {}): Told => [
  time,
  clickOf({ short_code, ...more }),
];

const personal = (time: string, code: string): Told => [time, { type: "PersonalLinkClicked", data: { code } }];

function fold(told: readonly Told[]) {
  let states = {
    conversions: conversions.initial(),
    results: results.initial(),
    runs: runs.initial(),
    visits: visits.initial(),
  };
  for (const [index, [time, { type, data }]] of told.entries()) {
    const event = { type, data, id: "", position: index + 1, stream: "", version: 1, time, hash: "", meta: {} };
    states = {
      conversions: conversions.evolve(states.conversions, event as unknown as Recorded),
      results: results.evolve(states.results, event as unknown as Recorded),
      runs: runs.evolve(states.runs, event as unknown as Recorded),
      visits: visits.evolve(states.visits, event as unknown as Recorded),
    };
  }
  return states;
}

const ALWAYS: Interval = { from: undefined, to: undefined };

/**
 * Two runs on two days. Each variant has a link of its own, and one link is in both variants. One recipient has
 * consented to tracking.
 */
const STORY: readonly Told[] = [
  ...message("2026-11-20T08:00:00.000Z", "1", { links: ["go.example/a", "go.example/both"], basis: "opt_in" }),
  ...message("2026-11-20T08:10:00.000Z", "2", {
    variant: "B",
    links: ["go.example/b", "go.example/both"],
    code: "own",
  }),
  click("2026-11-20T09:00:00.000Z", "a", { visitor: 65 }),
  click("2026-11-20T09:01:00.000Z", "a", { visitor: 65 }),
  click("2026-11-20T09:02:00.000Z", "a", { bot: true }),
  click("2026-11-20T09:03:00.000Z", "both", { visitor: 129 }),
  click("2026-11-20T09:10:01.000Z", "b", { visitor: 193 }),
  personal("2026-11-20T09:10:01.000Z", "own"),
  reply("2026-11-20T23:00:00.000Z", "1"),
  ...message("2026-11-21T08:00:00.000Z", "3", { run: "run-2", links: ["go.example/a"], basis: "opt_in" }),
  click("2026-11-21T09:00:00.000Z", "a", { visitor: 65 }),
  [
    "2026-11-21T10:00:00.000Z",
    { type: "LinkAdded", data: { domain: "go.example", code: "poster", target: "https://shop.example/" } },
  ],
  click("2026-11-21T11:00:00.000Z", "poster", { visitor: 321 }),
];

const states = fold(STORY);

/** Returns the rows of the results: each group with its sent messages, its replies, and its clicks as total/unique. */
async function shown(by: Grouping, interval = ALWAYS) {
  return (await createResults(states, by, interval)).rows.map(({ group, figures: { sent, replied, clicks } }) => [
    ...Object.values(group),
    sent,
    replied,
    clicks === null ? null : `${clicks.total}/${clicks.unique}`,
  ]);
}

test.each<[string | undefined, string | undefined, clicks: number, mergedTo: string | null]>([
  [undefined, undefined, 5 + 7, "2026-11-10"],
  [undefined, "2026-11-10", 7, "2026-11-10"],
  [undefined, "2026-11-09", 0, "2026-11-10"],
  ["2026-11-10", undefined, 5, "2026-11-10"],
  // The clicks of the days up to 2026-11-10 exist only as one total. The results compare this interval with the six
  // days before it, which begin on 2026-11-10, so the results still name that day.
  ["2026-11-16", "2026-11-21", 5, "2026-11-10"],
  ["2026-11-20", "2026-11-21", 5, null],
])("clicks of merged days count from %s to %s only if all are within", async (from, to, clicks, mergedTo) => {
  const merged = fold(STORY);
  merged.visits.links.get("go.example/a")!.earlier = { ...noVisits(), clicks: 7 };
  merged.visits.merged_to = "2026-11-10";
  const interval = parseInterval(from, to, Date.parse("2026-11-22T12:00:00.000Z"));
  const found = await createResults(merged, "variant", interval);
  expect([found.total.figures.clicks?.total, found.mergedTo]).toEqual([clicks, mergedTo]);
  expect(resultsAsJson("variant", found).clicks_merged_to).toBe(mergedTo);
  const [head, row] = resultsAsCsv(resultsAsJson("variant", found)).split("\r\n");
  expect(head).toEndWith(',"clicks_merged_to"');
  if (found.rows.length > 0) expect(row).toEndWith(`,"${mergedTo ?? ""}"`);
  const note = `Clicks up to ${mergedTo} are no longer told apart by day`;
  expect(describeMergedDays(found)).toStartWith(mergedTo === null ? "" : note);
});

describe("results grouped", () => {
  test.each<[Grouping, (string | number | null)[][]]>([
    ["template", [["aaaa", null, 3, 1, "5/4"]]],
    [
      "variant",
      [
        ["aaaa", null, "A", 2, 1, "3/2"],
        ["aaaa", null, "B", 1, 0, "1/1"],
      ],
    ],
    [
      "run",
      [
        ["run-1", 2, 1, null],
        ["run-2", 1, 0, null],
      ],
    ],
    [
      "day",
      [
        ["2026-11-20", 2, 1, "4/3"],
        ["2026-11-21", 1, 0, "1/1"],
      ],
    ],
    [
      "source",
      [
        ["list", 2, 1, null],
        [null, 1, 0, null],
      ],
    ],
    [
      "basis",
      [
        ["opt_in", 2, 1, null],
        [null, 1, 0, null],
      ],
    ],
    [
      "link",
      [
        ["go.example/a", 2, 1, "3/2"],
        ["go.example/both", 2, 1, "1/1"],
        ["go.example/b", 1, 0, "1/1"],
        ["go.example/poster", 0, 0, "1/1"],
      ],
    ],
  ])("by %s", async (by, rows) => {
    expect(await shown(by)).toEqual(rows);
  });

  test("by anything count each message and message link once in the total", async () => {
    for (const by of GROUPINGS) {
      const { figures } = (await createResults(states, by, ALWAYS)).total;
      expect(figures).toMatchObject({ attempted: 3, sent: 3, replied: 1 });
      const unique = by === "link" ? 5 : 4;
      expect(figures.clicks).toEqual({ total: unique + 1, unique, suspected: 0, anonymous: 0, bots: 1, probes: 0 });
      expect(figures.tracked).toMatchObject({ recipients: 1, clicked: 1, first_click_ms: 3_600_000 });
    }
  });

  test("by variant count no clicks on a link that two variants share", async () => {
    const later = fold([
      ...STORY,
      ...message("2026-11-22T08:00:00.000Z", "4", { variant: "B", links: ["go.example/a"] }),
    ]);
    const { rows } = await createResults(later, "variant", ALWAYS);
    expect(rows.map(({ figures: { clicks } }) => clicks?.total ?? null)).toEqual([null, 1]);
  });
});

describe("an interval", () => {
  const NOW = Date.parse("2026-11-21T12:00:00.000Z");
  const interval = (from?: string, to?: string) => parseInterval(from, to, NOW);
  const days = ({ from, to }: Interval) =>
    [from, to].map((ms) => (ms === undefined ? undefined : new Date(ms).toISOString().replace("T00:00:00.000Z", "")));

  test("consists of whole UTC days, includes both ends and ends today by default", async () => {
    expect(days(interval("2026-11-20", "2026-11-20"))).toEqual(["2026-11-20", "2026-11-21"]);
    expect(days(interval("2026-11-20T23:00:00-02:00"))).toEqual(["2026-11-21", "2026-11-22"]);
    expect(days(interval(undefined, "2026-11-20T08:00Z"))).toEqual([undefined, "2026-11-21"]);
    expect(days(interval())).toEqual([undefined, undefined]);
    expect(days(interval("2026-12-24"))).toEqual(["2026-12-24", "2026-12-25"]);
  });

  test("is refused if it ends before it begins or has an invalid day", async () => {
    for (const [from, to] of [
      ["2026-11-21", "2026-11-20"],
      ["7", undefined],
      ["2026-02-30", undefined],
      [undefined, "yesterday"],
    ] as const)
      expect(() => interval(from, to)).toThrow(ServiceError);
  });

  test("counts each message in every interval with its day, and in no other", async () => {
    const sentOn = [2, 0, 1, 3, 1];
    const days = sentOn.map((_, day) => `2026-11-${20 + day}`);
    const { results: all } = fold(
      days.flatMap((day, at) => Array.from({ length: sentOn[at]! }, () => message(`${day}T00:00:00.000Z`, "1")).flat()),
    );
    for (const from of days.keys()) {
      for (let to = from; to < days.length; to++) {
        const { figures } = await sumMessages(all, parseInterval(days[from], days[to], 0), undefined);
        expect(figures.attempted).toBe(sentOn.slice(from, to + 1).reduce((sum, count) => sum + count));
      }
    }
  });

  test("has the same message figures when they are summed without clicks", async () => {
    const states = fold(STORY);
    const withoutClicks = (of: Figures) => ({ ...of, clicks: null });
    for (const interval of [
      ALWAYS,
      parseInterval("2026-11-21", "2026-11-21", 0),
      parseInterval("2026-11-22", undefined, 0),
    ]) {
      const { figures, previous } = (await createResults(states, "run", interval)).total;
      const expected = { figures: withoutClicks(figures), previous: previous && withoutClicks(previous) };
      expect(await sumMessages(states.results, interval, undefined)).toEqual(expected);
    }
  });

  test("sums up messages from the present results as they were at each earlier position", async () => {
    const now = fold(STORY).results;
    for (const interval of [ALWAYS, parseInterval("2026-11-21", "2026-11-21", 0)]) {
      for (const position of [0, ...STORY.keys().map((index) => index + 1)]) {
        const then = fold(STORY.slice(0, position)).results;
        expect(await sumMessages(now, interval, position)).toEqual(await sumMessages(then, interval, undefined));
      }
    }
  });

  test("counts messages by intent and clicks by arrival, next to the previous interval", async () => {
    const today = interval("2026-11-21", "2026-11-21");
    expect(await shown("variant", today)).toEqual([["aaaa", null, "A", 1, 0, "1/1"]]);
    const { previous, rows, total } = await createResults(states, "variant", today);
    expect(days(previous ?? ALWAYS)).toEqual(["2026-11-20", "2026-11-21"]);
    expect(rows[0]?.previous).toMatchObject({ sent: 1, replied: 1, clicks: { total: 2, unique: 1, bots: 1 } });
    expect(total.previous).toMatchObject({ sent: 2, clicks: { total: 4 } });
    const byDay = (await createResults(states, "day", today)).rows;
    expect(byDay).toMatchObject([{ group: { day: "2026-11-21" }, previous: { sent: 2 } }]);
    expect((await createResults(states, "run", today)).rows).toMatchObject([
      { group: { run_id: "run-2" }, previous: null },
    ]);
    expect((await createResults(states, "variant", interval(undefined, "2026-11-21"))).previous).toBeUndefined();
  });
});

test("only the newest rows are returned, with the number of omitted ones", async () => {
  const many = fold(
    Array.from({ length: RESULT_ROWS_MAX + 2 }, (_, run) =>
      message("2026-11-20T08:00:00.000Z", String(run), { run: `run-${run}` }),
    ).flat(),
  );
  const { rows, omitted, total } = await createResults(many, "run", ALWAYS);
  expect([rows.length, omitted, rows[0]?.group.run_id]).toEqual([RESULT_ROWS_MAX, 2, "run-2"]);
  expect(total.figures.sent).toBe(RESULT_ROWS_MAX + 2);
});

test("a CSV row has current and previous figures, and no cell is a formula", async () => {
  const formula = fold(message("2026-11-21T08:00:00.000Z", "1", { template: "=1", variant: "A" }));
  const table = await createResults(
    formula,
    "variant",
    parseInterval("2026-11-21", undefined, Date.parse("2026-11-21")),
  );
  const [head = "", row = "", ...rest] = resultsAsCsv(resultsAsJson("variant", table)).split("\r\n");
  // The byte order mark tells Excel that the file is UTF-8.
  expect(head).toStartWith(
    '\ufeff"template","template_name","variant","attempted","sent","failed","in_doubt","replied"',
  );
  expect(row).toStartWith('"\'=1","","A","1","1","0","0","0","0","0.0000","0.0000","0.7935","",');
  expect(row.split(",")).toHaveLength(head.split(",").length);
  expect(rest).toEqual([""]);
});

test("a template is shown by its newest name, with its id if the name is ambiguous", async () => {
  const named = (id: string, template: string, template_name?: string) =>
    message("2026-11-20T08:00:00.000Z", id, { template, ...(template_name && { template_name }) });
  const found = fold([...named("1", "aaaa", "Draft"), ...named("2", "aaaa", "Autumn"), ...named("3", "bbbb")]);
  const { rows } = await createResults(found, "template", ALWAYS);
  expect(rows.map(({ group, figures: { sent } }) => ({ ...group, sent }))).toEqual([
    { template: "aaaa", template_name: "Autumn", sent: 2 },
    { template: "bbbb", template_name: null, sent: 1 },
  ]);
  const namesIn = (state: typeof found) => rows.map(({ group }) => nameMember(group, "template", state.results));
  expect(namesIn(found)).toEqual(["Autumn", "bbbb"]);
  expect(namesIn(fold([...named("1", "aaaa", "Autumn"), ...named("2", "bbbb", "Autumn")]))).toEqual([
    "Autumn (aaaa)",
    "Autumn (bbbb)",
  ]);
});

test("the JSON has the interval, the previous one and the figures of both", async () => {
  const table = await createResults(states, "variant", parseInterval("2026-11-21", "2026-11-21", 0));
  expect(resultsAsJson("variant", table)).toMatchObject({
    by: "variant",
    interval: { from: "2026-11-21T00:00:00.000Z", to: "2026-11-22T00:00:00.000Z" },
    previous_interval: { from: "2026-11-20T00:00:00.000Z", to: "2026-11-21T00:00:00.000Z" },
    rows: [{ template: "aaaa", variant: "A", sent: 1, reply_rate: { rate: 0 }, previous: { sent: 1 } }],
    omitted: 0,
    unique_standard_error: expect.closeTo(0.023, 3),
  });
});

test("a message that arrives during a calculation counts in the next one", async () => {
  const many = fold(
    Array.from({ length: 20_000 }, (_, number) => message("2026-11-20T08:00:00.000Z", String(number))).flat(),
  );
  const asked = createResults(many, "run", ALWAYS);
  const [[time, { data }] = ["", {}] as never] = message("2026-11-21T08:00:00.000Z", "late", { run: "run-2" });
  const event = {
    type: "DirectMessageAttempted",
    data,
    id: "",
    position: 1,
    stream: "",
    version: 1,
    time,
    hash: "",
    meta: {},
  };
  results.evolve(many.results, event as unknown as Recorded);
  expect((await asked).rows.map(({ group }) => group.run_id)).toEqual(["run-1"]);
  expect((await createResults(many, "run", ALWAYS)).rows.map(({ group }) => group.run_id)).toEqual(["run-1", "run-2"]);
});
