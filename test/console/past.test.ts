// On the memory harness.
import { expect, test } from "bun:test";
import type { EventStore } from "eventstore-lite";
import { h, type VNode } from "preact";
import type { Event } from "../../events/catalog.ts";
import { type ProjectionName } from "../../projections/all.ts";
import { createStates } from "../../projections/states.ts";
import { loadConfig } from "../../src/config/config.ts";
import { createPastPages, type PastVisit } from "../../src/console/console.ts";
import { ConsoleDocument, renderPage } from "../../src/console/document.tsx";
import { askOperation, consolePage } from "../../src/console/page-context.ts";
import { A, PageForm } from "../../src/console/parts/link.tsx";
import { MomentFolding } from "../../src/projector/log-reader.ts";
import { listTokens } from "../../src/privacy/tokens.operations.ts";
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

test("a page gets all states that it declares, in one request for its moment", async () => {
  const { asked, make } = watched();
  const page = consolePage({
    reads: ["quota", "stats"],
    render(view) {
      const Deep = () => h("p", null, view.state("stats").sent);
      return h("main", null, [view.state("quota").timezone ?? "", h(Deep, null)]);
    },
  });
  expect(await make(page, visitOf(""))).toMatchObject({ outcome: "shown" });
  expect(asked).toEqual([["quota", "stats"]]);
});

test("a page may decide by its address what it reads", async () => {
  const { asked, make } = watched();
  const page = consolePage({
    reads: ({ query }) => (query.has("sent") ? ["stats"] : []),
    render: (view) => h("p", null, view.query.has("sent") ? view.state("stats").sent : "none"),
  });
  for (const query of ["", "sent"]) expect(await make(page, visitOf(query))).toMatchObject({ outcome: "shown" });
  expect(asked).toEqual([[], ["stats"]]);
});

test("a page whose moment is gone while it is made is not ready", async () => {
  const { make } = watched();
  const page = consolePage({
    reads: [],
    render() {
      throw new MomentFolding(1);
    },
  });
  expect(await make(page, visitOf(""))).toEqual({ outcome: "not_ready" });
});

test("a page that an operation makes read more than it declares is a fault of its own", async () => {
  const { make } = watched();
  const page = consolePage({
    reads: ["quota"],
    async render(view) {
      await askOperation(view, listTokens, {});
      return undefined;
    },
  });
  expect(make(page, visitOf(""))).rejects.toThrow("a page reads tokens, which it does not declare");
});

test("the links and forms of a page keep its moment, but for those that choose one", async () => {
  const { make } = watched();
  const page = consolePage({
    reads: ["account"],
    render: (view) =>
      h(ConsoleDocument, {
        title: "Runs",
        path: "/",
        view,
        children: [
          h(A, { href: "/runs?after=7#end" }),
          h(A, { href: "/api/health" }),
          h("a", { href: "?as_of=2" }),
          h(PageForm, { action: "/find" }),
        ],
      }) as VNode,
  });
  const made = await make(page, visitOf(""));
  if (made.outcome !== "shown" || made.page === undefined || !("type" in made.page)) throw new Error("it has no page");
  const main = renderPage(made.page).split('<main id="main"')[1] ?? "";
  expect(main).toContain(
    '<a href="/runs?after=7&amp;as_of=1#end"></a><a href="/api/health"></a><a href="?as_of=2"></a>',
  );
  expect(main).toContain('<form action="/find" method="get"><input type="hidden" name="as_of" value="1"/></form>');
});

test("what goes wrong in a page goes wrong", async () => {
  const { make } = watched();
  const page = consolePage({
    reads: [],
    render() {
      throw new Error("a broken page");
    },
  });
  expect(await make(page, visitOf("")).catch((fault: unknown) => fault)).toEqual(new Error("a broken page"));
});
