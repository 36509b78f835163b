// On the memory harness.
import { expect, test } from "bun:test";
import type { EventStore } from "eventstore-lite";
import { h } from "preact";
import type { Event } from "../../events/catalog.ts";
import { type ProjectionName } from "../../projections/all.ts";
import { createStates } from "../../projections/states.ts";
import { loadConfig } from "../../src/config/config.ts";
import { createPastPages, type PastVisit } from "../../src/console/console.ts";
import type { ConsolePage } from "../../src/console/page-context.ts";
import { consoleSettings } from "../../src/service/shown-configuration.ts";
import { logInMemory } from "../history/log-in-memory.ts";
import { testLog } from "../harness/memory/events.ts";

function visitOf(query: string): PastVisit {
  const log = testLog();
  log.add("RunStarted", { run_id: "run-1", dry_run: false });
  return {
    parameters: {},
    query: new URLSearchParams(query),
    store: logInMemory(log.events) satisfies EventStore<Event>,
    settings: consoleSettings(
      loadConfig({}, () => ""),
      { configured: [], recognisesMs: () => 0 },
      { hashesOf: () => [], wantsToken: () => false, tokens: () => [] },
    ),
    notice: undefined,
    span: undefined,
    stateNow: (name) => createStates([name]).get(name),
    hasNow: () => false,
    asOf: "1",
    present: Date.parse("2030-01-01"),
  };
}

/** Creates pages whose states are ready immediately, and records the names that each attempt asks for. */
function watched() {
  const asked: (readonly ProjectionName[])[] = [];
  const make = createPastPages({
    async at(_position, names) {
      asked.push(names);
      return createStates(names).all();
    },
  });
  return { asked, make };
}

test("a page gets all states at once that it reads, also deep inside of it, and from then on at its first attempt", async () => {
  const { asked, make } = watched();
  const page: ConsolePage = (view) => {
    const Deep = () => h("p", null, view.state("stats").sent);
    return h("main", null, [view.state("quota").timezone ?? "", h(Deep, null)]);
  };
  for (let time = 0; time < 2; time++) expect(await make(page, visitOf(""))).toMatchObject({ outcome: "shown" });
  expect(asked).toEqual([[], ["quota", "stats"], ["quota", "stats"]]);
});

test("a page that reads another state than before is made again, with that one too", async () => {
  const { asked, make } = watched();
  const page: ConsolePage = (view) =>
    h("p", null, view.query.has("sent") ? view.state("stats").sent : view.state("clicks").links.size);
  for (const query of ["", "sent", "sent", ""]) {
    expect(await make(page, visitOf(query))).toMatchObject({ outcome: "shown" });
  }
  const both = ["clicks", "stats"] as const;
  expect(asked).toEqual([[], ["clicks"], ["clicks"], both, both, both]);
});

test("what goes wrong in a page goes wrong", async () => {
  const { make } = watched();
  const page: ConsolePage = () => {
    throw new Error("a broken page");
  };
  expect(await make(page, visitOf("")).catch((fault: unknown) => fault)).toEqual(new Error("a broken page"));
});

test("what goes wrong in a page that lacks a state is tried again with it", async () => {
  const { asked, make } = watched();
  const page: ConsolePage = (view) => {
    view.state("stats");
    if (asked.length === 1) throw new Error("made of an empty state");
    return h("p", null, "made");
  };
  expect(await make(page, visitOf(""))).toMatchObject({ outcome: "shown" });
  expect(asked).toEqual([[], ["stats"]]);
});
