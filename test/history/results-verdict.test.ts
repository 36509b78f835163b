// These tests call the code directly.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { judgeTemplates, judgeVariants, type VariantCounts } from "../../src/history/results-verdict.ts";

const FAR = { dailyLimit: 100, countPeopleLeft: () => 1_000_000 };

/** Makes the counts of a variant: messages, replies, recipients who granted tracking, and those who clicked. */
function variant(name: string, sent: number, replied: number, granted = 0, clicked = 0): VariantCounts {
  return { name, sent, clicked: { hits: clicked, trials: granted }, replied: { hits: replied, trials: sent } };
}

const AUTUMN = [variant("A", 150, 24, 68, 17), variant("B", 147, 23, 66, 32)];
const WINTER = [variant("A", 88, 13, 40, 14), variant("B", 90, 14, 41, 13)];

test("a certain difference names the better variant, its lead and how likely luck is", () => {
  expect(judgeVariants(AUTUMN, FAR)).toEqual({
    outcome: "better",
    winner: { clicked: "B", replied: null },
    more_messages: null,
    title: "B is better: twice as many click",
    explanation:
      "48 % clicked with B, 25 % with A. Luck alone would give this in fewer than 1 of 100 tries. Replies do not differ clearly.",
  });
});

test("if too few recipients are left to tell variants apart, the verdict says to choose by taste", () => {
  expect(judgeVariants(WINTER, { dailyLimit: 100, countPeopleLeft: () => 69 })).toMatchObject({
    outcome: "same",
    winner: { clicked: null, replied: null },
    more_messages: 14_000,
    title: "No difference worth waiting for",
    explanation:
      "35 % clicked with A, 32 % with B. To tell them apart would take about 14,000 more messages, and your list has 69 people left. Choose by taste.",
  });
});

test("without the number of recipients left, the verdict depends only on the time that the quota needs", () => {
  const limits = { dailyLimit: 1_000 };
  expect(judgeVariants(WINTER, limits)).toEqual(
    judgeVariants(WINTER, { ...FAR, ...limits, countPeopleLeft: () => 1_000_000 }),
  );
});

test.each([
  [100, "14,000 more messages: 140 days at the full quota. Choose by taste."],
  [30, "14,000 more messages: beyond a year at the full quota. Choose by taste."],
])("with a quota of %i a day, the wait is more than 90 days", (dailyLimit, ending) => {
  const { outcome, explanation } = judgeVariants(WINTER, { ...FAR, dailyLimit });
  expect(outcome).toBe("same");
  expect(explanation).toEndWith(ending);
});

test("a difference that the quota can decide within 90 days is too early to call", () => {
  expect(judgeVariants([variant("A", 60, 12), variant("B", 60, 18)], FAR)).toMatchObject({
    outcome: "early",
    more_messages: 470,
    title: "Too early to call",
    explanation: "30 % replied with B, 20 % with A. About 470 more messages decide it: 5 days at the full quota.",
  });
});

test("fewer than 20 messages of a variant are not judged", () => {
  expect(judgeVariants([variant("A", 12, 1), variant("B", 9, 9)], FAR)).toMatchObject({
    outcome: "few",
    title: "Not enough messages yet",
    explanation: "12 of 20 sent with A, 9 with B.",
  });
  const third = judgeVariants([...AUTUMN, variant("C", 3, 3)], FAR);
  expect(third).toEqual(judgeVariants(AUTUMN, FAR));
});

test("no number of messages tells equal rates apart", () => {
  expect(judgeVariants([variant("A", 40, 10), variant("B", 80, 20)], FAR)).toMatchObject({
    outcome: "same",
    more_messages: null,
    explanation: "25 % replied with both. Choose by taste.",
  });
});

test("if one variant wins by clicks and another by replies, the verdict names both", () => {
  const split = [variant("A", 200, 100, 100, 10), variant("B", 200, 20, 100, 50)];
  expect(judgeVariants(split, FAR)).toMatchObject({
    outcome: "split",
    winner: { clicked: "B", replied: "A" },
    title: "B gets more clicks, A more replies",
    explanation: "50 % clicked with B, 10 % with A. 50 % replied with A, 10 % with B.",
  });
});

test("of three variants, one wins only if it is certainly ahead of both others", () => {
  const close = [variant("A", 100, 10), variant("B", 100, 40), variant("C", 100, 38)];
  expect(judgeVariants(close, FAR).outcome).not.toBe("better");
  const clear = [variant("A", 100, 10), variant("B", 100, 70), variant("C", 100, 38)];
  expect(judgeVariants(clear, FAR)).toMatchObject({
    title: "B is better: twice as many reply",
    explanation:
      "70 % replied with B, 38 % with C, 10 % with A. Luck alone would give this in fewer than 1 of 1,000 tries.",
  });
});

const RATE = { rate: 0, low: 0, high: 0 };

/** Makes the row of a variant without tracked clicks. */
function row(template: string, name: string, sent: number, replied: number) {
  const tracked = { recipients: 0, clicked: 0, clicks: 0, suspected: 0, converted: 0, first_click_ms: null };
  const conversions = { total: 0, reversed: 0, values: [] };
  const worth = { conversions, cost_usd: null, cost_per_conversion_usd: null, conversion_rate: null };
  const messages = { attempted: sent, sent, failed: 0, in_doubt: 0, seen: 0, replied, opted_out: 0 };
  const figures = { ...messages, seen_rate: RATE, reply_rate: RATE, clicks: null, tracked, click_rate: null, ...worth };
  return { group: { template, template_name: `Name of ${template}`, variant: name }, figures };
}

test("each template with several variants has a verdict that names it", () => {
  const rows = [row("one", "A", 50, 5), row("two", "A", 30, 3), row("one", "B", 50, 25), row("three", "A", 90, 9)];
  expect(judgeTemplates([...rows, row("two", "B", 3, 1)], () => FAR)).toMatchObject([
    { template: "one", template_name: "Name of one", sent: 100, outcome: "better" },
    { template: "two", template_name: "Name of two", sent: 33, outcome: "few" },
  ]);
});

const share = (trials: number) => fc.nat(trials);
const counts = fc.integer({ min: 20, max: 400 }).chain((sent) =>
  fc.integer({ min: 1, max: sent }).chain((granted) =>
    fc.record({
      sent: fc.constant(sent),
      granted: fc.constant(granted),
      replied: share(sent),
      clicked: share(granted),
    }),
  ),
);
const toVariant = (name: string, { sent, replied, granted, clicked }: Record<string, number>, times = 1) =>
  variant(name, sent! * times, replied! * times, granted! * times, clicked! * times);

test("the verdict does not depend on the order or the names of two variants", () => {
  fc.assert(
    fc.property(counts, counts, (one, other) => {
      const [a, b] = [toVariant("A", one), toVariant("B", other)];
      expect(judgeVariants([b, a], FAR)).toEqual(judgeVariants([a, b], FAR));
      const renamed = judgeVariants([toVariant("B", one), toVariant("A", other)], FAR);
      const original = judgeVariants([a, b], FAR);
      const rename = (name: string | null) => (name === null ? null : name === "A" ? "B" : "A");
      expect(renamed.winner).toEqual({
        clicked: rename(original.winner.clicked),
        replied: rename(original.winner.replied),
      });
      expect([renamed.outcome, renamed.more_messages]).toEqual([original.outcome, original.more_messages]);
    }),
  );
});

test("more messages with the same shares never undo a winner", () => {
  fc.assert(
    fc.property(counts, counts, fc.integer({ min: 2, max: 50 }), (one, other, times) => {
      const few = judgeVariants([toVariant("A", one), toVariant("B", other)], FAR);
      const many = judgeVariants([toVariant("A", one, times), toVariant("B", other, times)], FAR);
      for (const measure of ["clicked", "replied"] as const)
        if (few.winner[measure] !== null) expect(many.winner[measure]).toBe(few.winner[measure]);
      if (few.outcome === "better" || few.outcome === "split") expect(["better", "split"]).toContain(many.outcome);
    }),
  );
});

test("the messages that a verdict asks for decide it if the shares stay as they are", () => {
  fc.assert(
    fc.property(counts, counts, (one, other) => {
      const { outcome, more_messages: more } = judgeVariants([toVariant("A", one), toVariant("B", other)], FAR);
      fc.pre(outcome === "early" && more !== null);
      const grow = (name: string, given: typeof one) => toVariant(name, given, 1 + more / 2 / given.sent);
      expect(judgeVariants([grow("A", one), grow("B", other)], FAR).outcome).toMatch(/better|split/);
    }),
  );
});
