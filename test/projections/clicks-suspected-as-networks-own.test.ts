// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Folded } from "../../events/event-types-and-codec.ts";
import { clicks } from "../../projections/clicks.ts";
import { fold } from "../../projections/projection.ts";
import { COUNTED_LINKS_MAX } from "../../projections/drop-oldest-links.ts";
import { linkKey, linksIn } from "../../projections/link-keys-and-text-links.ts";
import {
  BURST_GAP_MS,
  FETCH_MS,
  SENDS_MAX,
  SUSPECTED_PER_SEND,
  suspected,
  type Suspected,
} from "../../projections/clicks-suspected-as-networks-own.ts";
import { histories } from "./generate-history.ts";
import { countCases, countSituations } from "../harness/case-count.ts";

const START = Date.parse("2026-11-20T10:00:00.000Z");

const TEXT = "Hi: https://go.example/a";

interface Step {
  readonly ms: number;
  readonly what: string;
  /** Text of the message; an outcome names its message by this text. For a click, the short code. */
  readonly of: string | undefined;
}

/**
 * Parses the notation of these tests: `SECONDS WHAT[=OF]`, separated by bars. `person` and `bot` click link a, or OF.
 * `intent`, `sent`, `found`, `failed` and `doubt` concern a message with link a, or with the text OF.
 */
function stepsOf(history: string): Step[] {
  return history.split(" | ").map((step) => {
    const [, seconds, what = "", of] = /^(\S+) (\w+)(?:=(.*))?$/.exec(step) ?? [];
    return { ms: Number(seconds) * 1_000, what, of };
  });
}

function eventOf({ ms, what, of }: Step, index: number): Folded {
  const base = { position: index + 1, version: 1, time: new Date(START + ms).toISOString() };
  const text = of ?? TEXT;
  const message = { attempt_id: text, run_id: "r", recipient: { id: "1", username: "ada" } };
  const sent = { ...message, message_id: "m" };
  switch (what) {
    case "intent":
      return { ...base, type: "DirectMessageAttempted", data: { ...message, text, variant: "A", day: "2026-11-20" } };
    case "sent":
      return { ...base, type: "DirectMessageSent", data: { ...sent, settled_by: "answer" } };
    case "found":
      return { ...base, type: "DirectMessageSent", data: { ...sent, settled_by: "lookup" } };
    case "doubt":
      return { ...base, type: "DirectMessageInDoubt", data: { ...message, detail: "" } };
    case "failed": {
      const failure = { reason: "recipient_closed", detail: "", frees_quota: true, retry: false } as const;
      return { ...base, type: "DirectMessageFailed", data: { ...message, ...failure } };
    }
    default: {
      const link = { domain: "go.example", short_code: of ?? "a", original_url: "https://x.example" };
      return { ...base, type: "LinkClicked", data: { ...link, event: "click", bot: what === "bot", channels: [] } };
    }
  }
}

function after(history: string, from: Suspected = suspected.initial()): Suspected {
  return fold(suspected, from, stepsOf(history).map(eventOf));
}

const people = (count: number, seconds: number): string => many(count, (at) => `${seconds + at / 10} person`);

function many(count: number, step: (at: number) => string): string {
  return Array.from({ length: count }, (_, at) => step(at)).join(" | ");
}

const HISTORIES: readonly (readonly [name: string, history: string, suspected: number])[] = [
  [
    "the observed fetch by X, a bot and three browsers",
    "0 intent | 0.4 bot | 0.5 person | 0.5 person | 0.6 sent | 1.2 person",
    3,
  ],
  ["browsers that come before the bot", "0 intent | 1 person | 2 person | 3 bot", 2],
  ["one browser next to the bot", "0 intent | 1 bot | 2 person", 1],
  ["one person alone, however early", "0 intent | 1 person", 0],
  ["two people too far apart", "0 intent | 1 person | 3.1 person", 0],
  ["two people just close enough", "0 intent | 1 person | 3 person", 2],
  ["a burst followed by a person", "0 intent | 1 bot | 1 person | 4 person", 1],
  ["a person followed by a burst", "0 intent | 1 person | 4 person | 5 person", 2],
  ["bots alone", "0 intent | 1 bot | 1 bot", 0],
  ["a burst without a message", "1 bot | 1 person | 1 person", 0],
  ["a burst just before the message", "0 person | 0 bot | 0 intent", 0],
  ["a burst half before the message", "0 bot | 0 intent | 0.1 person", 0],
  ["the latest possible burst", "0 intent | 9 bot | 10 person", 1],
  ["a burst with a second request too late", "0 intent | 9 person | 10.1 person", 0],
  ["a burst long after the message", "0 intent | 60 bot | 60 person | 60 person", 0],
  ["a burst after a delayed send", "0 intent | 60 sent | 61 bot | 61 person", 1],
  ["a burst before a delayed send", "0 intent | 30 bot | 30 person | 60 sent", 0],
  ["a burst across the windows of intent and send", "0 intent | 9.5 person | 10.5 sent | 11 person", 2],
  ["a message in doubt", "0 intent | 5 doubt | 6 bot | 6 person", 1],
  ["a message in doubt found by a lookup", "0 intent | 5 doubt | 60 found | 61 bot | 61 person", 0],
  ["a lookup without a recorded doubt", "0 intent | 60 found | 61 bot | 61 person", 0],
  ["a failed message", "0 intent | 1 failed | 60 sent | 61 bot | 61 person", 0],
  ["a message without a link", "0 intent=Hi | 1 bot | 1 person", 0],
  ["a message with another link", "0 intent=Hi: go.example/b | 1 bot | 1 person", 0],
  ["a bare domain, in capitals", "0 intent=GO.EXAMPLE/a | 1 bot | 1 person", 1],
  ["more clicks than X was observed to make", `0 intent | 1 bot | ${people(9, 1)}`, SUSPECTED_PER_SEND],
  [
    "two messages with twice as many clicks",
    `0 intent | 0 intent=${TEXT}?2 | 1 bot | ${people(15, 1)}`,
    2 * SUSPECTED_PER_SEND,
  ],
  [
    "intent and send of one message, limited together",
    `0 intent | 1 bot | ${people(9, 1)} | 8 sent | 9 bot | ${people(3, 9)}`,
    SUSPECTED_PER_SEND,
  ],
  [
    "a waiting click, counted for its own message",
    `0 intent | 0 doubt | 9 intent=${TEXT}?2 | 9.9 person | ${people(9, 10.5)}`,
    1 + SUSPECTED_PER_SEND,
  ],
  [
    "two links with interleaved clicks",
    "0 intent=go.example/a go.example/b | 1 person | 2 person=b | 3 person | 4 person=b",
    4,
  ],
];

test("a suspected click counts in the quarter of an hour in which it arrived", () => {
  const quarter = 900;
  const state = after(`${quarter - 1} intent | ${quarter - 0.5} person | ${quarter + 0.5} bot | ${quarter + 1} person`);
  expect([...state.quarters]).toEqual([
    [START, { clicks: 1, bots: 0, suspected: 1 }],
    [START + quarter * 1_000, { clicks: 1, bots: 1, suspected: 1 }],
  ]);
  expect([...(state.links.get("go.example/a")?.suspected_at ?? [])]).toEqual([
    [START, { suspected: 1 }],
    [START + quarter * 1_000, { suspected: 1 }],
  ]);
});

describe("the number of suspected clicks for", () => {
  test.each(HISTORIES)("%s", (_, history, suspected) => {
    const { all, links } = after(history);
    expect(all.suspected).toBe(suspected);
    expect([...links.values()].reduce((sum, link) => sum + link.suspected, 0)).toBe(suspected);
    expect(all.clicks).toBe(history.match(/person/g)?.length ?? 0);
    expect(all.bots).toBe(history.match(/bot/g)?.length ?? 0);
  });
});

/**
 * Counts the suspected clicks of each link exactly as the rule says. It is a slow reference, because it scans all
 * events for each click.
 */
function byTheRule(events: readonly Folded[]): Map<string, number> {
  const sends = events.flatMap((event) => {
    if (event.type !== "DirectMessageAttempted") return [];
    const { attempt_id, text } = event.data;
    const outcome = events.find(
      ({ type, data }) => /Sent|Failed|InDoubt/.test(type) && "attempt_id" in data && data.attempt_id === attempt_id,
    );
    const wasTaken = outcome?.type === "DirectMessageSent" && outcome.data.settled_by === "answer";
    const moments = wasTaken ? [event, outcome] : [event];
    return [{ moments, left: new Map(linksIn(text).map((link) => [link, SUSPECTED_PER_SEND])) }];
  });
  const isDue = (event: Folded, link: string, { moments, left }: (typeof sends)[number]): boolean =>
    left.has(link) &&
    moments.some((moment) => moment.position < event.position && msBetween(moment, event) <= FETCH_MS);
  const suspected = new Map<string, number>();
  for (const link of ["go.example/a", "go.example/b", "go.example/c"]) {
    const requests = events.filter(
      (event) => event.type === "LinkClicked" && linkKey(event.data.domain, event.data.short_code) === link,
    );
    const due = requests.filter((request) => sends.some((send) => isDue(request, link, send)));
    for (const [at, request] of due.entries()) {
      const isNear = [due[at - 1], due[at + 1]].some(
        (other) => other !== undefined && msBetween(request, other) <= BURST_GAP_MS,
      );
      const send = sends.find((one) => isDue(request, link, one) && (one.left.get(link) ?? 0) > 0);
      if (request.type !== "LinkClicked" || request.data.bot || !isNear || send === undefined) continue;
      send.left.set(link, (send.left.get(link) ?? 0) - 1);
      suspected.set(link, (suspected.get(link) ?? 0) + 1);
    }
  }
  return suspected;
}

function msBetween(one: Folded, other: Folded): number {
  return Math.abs(Date.parse(one.time) - Date.parse(other.time));
}

/** fast-check generator of messages and clicks close in time, with two links and texts that contain either or both. */
const closeHistories = fc
  .array(
    fc.tuple(
      fc.constantFrom(1, 400, 1_500, 2_000, 2_001, 4_000, 9_000, 12_000),
      fc.constantFrom("intent", "sent", "found", "doubt", "failed", "bot", "person", "person", "person"),
      fc.nat(2),
    ),
    { maxLength: 60, size: "max" },
  )
  .map((rolls) => {
    const texts = ["go.example/a", "go.example/b", "go.example/a go.example/b"];
    let ms = 0;
    let intents = 0;
    const steps = rolls.map(([gap, what, roll]): Step => {
      ms += gap;
      if (what === "person" || what === "bot") return { ms, what, of: roll === 0 ? "b" : "a" };
      if (what === "intent") return { ms, what, of: `${texts[roll]} #${++intents}` };
      // If the last message has the chosen text, this is its outcome. Otherwise it is an outcome of a message that does
      // not exist.
      return { ms, what, of: `${texts[roll]} #${intents}` };
    });
    return steps.map(eventOf);
  });

test("in any history, the suspected clicks match a reference implementation", () => {
  let seen = 0;
  fc.assert(
    fc.property(closeHistories, (events) => {
      const { links, all } = fold(suspected, suspected.initial(), events);
      const expected = byTheRule(events);
      for (const [link, { suspected, suspected_at = new Map() }] of links) {
        expect([link, suspected]).toEqual([link, expected.get(link) ?? 0]);
        expect(suspected_at.values().reduce((sum, at) => sum + at.suspected, 0)).toBe(suspected);
      }
      seen += all.suspected;
    }),
    { numRuns: countCases(2_000) },
  );
  expect(seen).toBeGreaterThan(countSituations(500));
});

test("in any history, clicks and bots are counted as by the clicks projection", () => {
  let seen = 0;
  fc.assert(
    fc.property(histories(), ({ events }) => {
      const { links, all } = fold(suspected, suspected.initial(), events);
      const counted = fold(clicks, clicks.initial(), events);
      expect([...links].map(([link, of]) => [link, of.clicks, of.bots])).toEqual(
        [...counted.links].map(([link, of]) => [link, of.clicks, of.bots]),
      );
      expect([all.clicks, all.bots]).toEqual([counted.total, counted.bots]);
      seen += all.suspected;
    }),
    { numRuns: 1_000 },
  );
  expect(seen).toBeGreaterThan(0);
});

test("links dropped beyond the limit keep their suspected clicks among the others", () => {
  const more = many(COUNTED_LINKS_MAX, (at) => `20 person=link${at}`);
  const state = after(`0 intent | 1 bot | 1 person | 1.5 person | ${more}`);
  expect(state.links.size).toBe(COUNTED_LINKS_MAX + 1 - COUNTED_LINKS_MAX / 10);
  expect(state.others).toEqual({ clicks: COUNTED_LINKS_MAX / 10 - 1 + 2, bots: 1, suspected: 2 });
  expect(state.all).toEqual({ clicks: COUNTED_LINKS_MAX + 2, bots: 1, suspected: 2 });
});

test("a waiting click is not suspected after its link was dropped", () => {
  const state = after(`0 intent | 1 person | ${many(COUNTED_LINKS_MAX, (at) => `1 person=link${at}`)} | 1.5 person`);
  expect(state.others).toEqual({ clicks: COUNTED_LINKS_MAX / 10, bots: 0, suspected: 0 });
  expect(state.links.get("go.example/a")).toMatchObject({ clicks: 1, bots: 0, suspected: 0 });
});

describe("the remembered messages", () => {
  test("are indexed by exactly the links that they contain", () => {
    // Builds the index that these messages should have. Its times are copied from the tested index, because they may be
    // of older messages that the state has forgotten.
    const indexOf = ({ sends, sent }: Suspected): Suspected["sent"] => {
      const found: Suspected["sent"] = new Map();
      for (const [attempt, { left }] of sends)
        for (const [name, places] of left) {
          const { at = 0 } = sent.get(name) ?? {};
          const link = found.getOrInsertComputed(name, () => ({ sends: 0, at, open: [] }));
          link.sends++;
          if (places > 0) link.open.push(attempt);
        }
      return found;
    };
    fc.assert(
      fc.property(closeHistories, (events) => {
        const state = fold(suspected, suspected.initial(), events);
        expect(state.sent).toEqual(indexOf(state));
      }),
      { numRuns: countCases(1_000) },
    );
    const exhausted = after(`0 intent | ${many(7, (at) => `${at / 10} person`)} | 1 intent=go.example/a #2`);
    expect([...(exhausted.sent.get("go.example/a")?.open ?? [])]).toEqual(["go.example/a #2"]);
    expect(exhausted.sent).toEqual(indexOf(exhausted));
    const full = after(many(3 * SENDS_MAX, (at) => `${at * 60} intent=go.example/${at} go.example/all`));
    expect(full.sent).toEqual(indexOf(full));
    expect(full.sent.get("go.example/all")?.sends).toBe(SENDS_MAX);
    const repeated = after(
      "0 intent=go.example/b | 1 intent=go.example/b | 2 sent=go.example/b | 60 intent=go.example/c",
    );
    expect([...repeated.sent.keys()]).toEqual(["go.example/c"]);
  });

  test("are forgotten once no click can result from them", () => {
    const state = after("0 intent | 1 sent | 2 bot | 2 person");
    expect([state.sends.size, state.bursts.size]).toEqual([1, 1]);
    after("14 intent=go.example/b", state);
    expect([[...state.sends.keys()], state.bursts.size]).toEqual([["go.example/b"], 0]);
  });

  test("are bounded in number, even if many have no outcome", () => {
    const state = after(many(3 * SENDS_MAX, (at) => `${at * 60} intent=go.example/${at}`));
    expect(state.sends.size).toBe(SENDS_MAX);
    expect([...state.sends.keys()].at(-1)).toBe(`go.example/${3 * SENDS_MAX - 1}`);
  });
});
