// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { EventStore, Query } from "eventstore-lite";
import type { Event, Recorded } from "../../events/event-types-and-codec.ts";
import { outcomeOf } from "../harness/in-process/dispatch-outcome-events.ts";
import { deliveries } from "../../projections/deliveries.ts";
import { listEnded } from "../../projections/dead-letters.ts";
import { findLetters } from "../../src/delivery/find-and-decide-dead-letters.ts";
import { readDispatchPage, type ListCursor } from "../../src/delivery/undelivered-pages.ts";

const CHANNELS = ["ads", "chat"] as const;

/**
 * Number of dead letters in each outcome event. Some events have more than fit on a page of the list. Their sources are
 * not in the order of the log.
 */
const GIVEN_UP = [1, 3, 70, 2, 120, 1, 60];

/** Position of the first outcome, after the positions of all clicks that requested dispatches. */
const FIRST_OUTCOME = 10_000;

/** Creates dead letters that alternate between two channels, and the log that contains them. */
function lettersAndLog() {
  const state = deliveries.initial();
  const outcomes = new Map<number, readonly number[]>();
  let source = 0;
  for (const [at, count] of [...GIVEN_UP, ...GIVEN_UP].entries()) {
    const sources = Array.from({ length: count }, () => ++source).sort((a, b) => (a % 7) - (b % 7));
    const position = FIRST_OUTCOME + at;
    outcomes.set(position, sources);
    const channel = CHANNELS[at % 2] ?? "ads";
    const { data } = outcomeOf("DispatchAbandoned", { source: 0, channel, lane: "clicks", detail: "", refused: true });
    const requests = data.requests.map((request) => ({ ...request, sources }));
    const event = {
      type: "DispatchAbandoned",
      position,
      time: "2026-03-01T08:00:00.000Z",
      data: { ...data, requests },
    };
    listEnded(state[channel].letters, event as Recorded<"DispatchAbandoned">, () => true);
    state[channel].dead += count;
  }
  async function* read({ from = 1, to = from }: Query = {}) {
    for (let position = from; position <= to; position++) {
      const sources = outcomes.get(position);
      if (sources === undefined) yield { type: "NotificationRequested", position } as unknown as Recorded;
      else yield { type: "DispatchAbandoned", position, data: { requests: [{ sources }] } } as unknown as Recorded;
    }
  }
  const letters = [...outcomes].flatMap(([position, sources]) => sources.map((one) => ({ position, source: one })));
  const newestFirst = letters.sort((one, other) => other.position - one.position || other.source - one.source);
  return { state, store: { read } as unknown as EventStore<Event>, newestFirst };
}

test("pages show each dead letter once, newest first, even if many share an event", async () => {
  const { state, store, newestFirst } = lettersAndLog();
  const listed: ListCursor[] = [];
  let after: ListCursor | undefined;
  do {
    const filter = { status: "dead" } as const;
    const letters = await findLetters(store, { deliveries: state, position: Infinity }, filter);
    const page = await readDispatchPage(store, letters, after);
    listed.push(...page.dispatches.map((one) => ({ position: one.outcome.position, source: one.source.position })));
    after = page.next && { position: page.next.position, source: page.next.source };
  } while (after !== undefined);
  expect(listed).toEqual(newestFirst);
});
