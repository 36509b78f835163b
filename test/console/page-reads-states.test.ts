// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { EventStore } from "eventstore-lite";
import { h, type VNode } from "preact";
import type { Event } from "../../events/event-types-and-codec.ts";
import { type ProjectionName } from "../../projections/all.ts";
import { createStates } from "../../projections/fold-states.ts";
import { loadConfig } from "../../src/config/config.ts";
import { createConsole } from "../../src/console/render-console.ts";
import { ConsoleDocument } from "../../src/console/document.tsx";
import { askOperation, consolePage, type ConsolePage } from "../../src/console/page-context.ts";
import { A, PageForm } from "../../src/console/parts/links-forms-and-tabs.tsx";
import { MomentFolding } from "../../src/projector/operation-states-as-of.ts";
import { createPageMoments } from "../../src/projector/moment-of-console-page.ts";
import { listTokens } from "../../src/privacy/list-api-tokens.operations.ts";
import { consoleSettings } from "../../src/service/shown-configuration.ts";
import { logInMemory } from "../history/log-in-memory.ts";
import { toOutreachRules } from "../../src/outreach/run-rules.ts";
import { testLog } from "../harness/in-process/number-and-fold-events.ts";

/** Returns the outreach rules of a service without suppressions. */
const commonRules = async () =>
  toOutreachRules({
    config: loadConfig({}, () => ""),
    hashesOf: () => [],
    keyring: { isForgotten: () => false },
  } as never);

/**
 * Opens a console of the past whose states are ready at once. `asked` records the names of the projections in each
 * read.
 */
function watched() {
  const asked: (readonly ProjectionName[])[] = [];
  const log = testLog();
  log.add("RunStarted", { run_id: "run-1", dry_run: false });
  const moments = createPageMoments({
    store: logInMemory(log.events) satisfies EventStore<Event>,
    projector: {
      position: 0,
      time: undefined,
      isFolded: () => false,
      state: (name) => createStates([name]).get(name),
    },
    past: {
      async at(_position, names) {
        asked.push(names);
        return createStates(names).all();
      },
    },
    clock: () => Date.parse("2030-01-01"),
    timezone: "UTC",
  });
  const settings = consoleSettings(
    loadConfig({}, () => ""),
    { configured: [], recognisesMs: () => 0 },
    { hashesOf: () => [], commonRules, wantsToken: () => false, tokens: () => [] },
  );
  const live = {
    awaySince: () => undefined,
    clockFault: () => undefined,
    instances: () => [],
    roles: async () => ({}),
    circuit: () => undefined,
    verification: () => undefined,
    lookup: () => undefined,
  };
  const { render } = createConsole({ moments, live, settings });
  /** Renders the page as of position 1. */
  const make = (page: ConsolePage, query = "") =>
    render(page, {
      parameters: {},
      query: new URLSearchParams(`${query}&as_of=1`),
      formToken: undefined,
      notice: undefined,
      language: "en-GB",
    });
  return { asked, make };
}

test("a page gets all its declared states in one read", async () => {
  const { asked, make } = watched();
  const page = consolePage({
    reads: ["quota", "stats"],
    render(view) {
      const Deep = () => h("p", null, view.state("stats").sent);
      return h("main", null, [view.state("quota").timezone ?? "", h(Deep, null)]);
    },
  });
  expect(await make(page)).toMatchObject({ outcome: "shown" });
  expect(asked).toEqual([["quota", "stats"]]);
});

test("a page may choose its states by its address", async () => {
  const { asked, make } = watched();
  const page = consolePage({
    reads: ({ query }) => (query.has("sent") ? ["stats"] : []),
    render: (view) => h("p", null, view.query.has("sent") ? view.state("stats").sent : "none"),
  });
  for (const query of ["", "sent"]) expect(await make(page, query)).toMatchObject({ outcome: "shown" });
  expect(asked).toEqual([[], ["stats"]]);
});

test("a page is not ready if its moment disappears during rendering", async () => {
  const { make } = watched();
  const page = consolePage({
    reads: [],
    render() {
      throw new MomentFolding(1);
    },
  });
  expect(await make(page)).toMatchObject({ outcome: "not_ready", text: expect.stringContaining("Not ready yet") });
});

test("a page that reads an undeclared state through an operation fails", async () => {
  const { make } = watched();
  const page = consolePage({
    reads: ["quota"],
    async render(view) {
      await askOperation(view, listTokens, {});
      return undefined;
    },
  });
  expect(make(page)).rejects.toThrow("a page reads tokens, which it does not declare");
});

test("the links and forms of a page keep its moment, unless they choose one", async () => {
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
  const made = await make(page);
  if (made?.outcome !== "shown") throw new Error("it has no page");
  const main = made.text.split('<main id="main"')[1] ?? "";
  expect(main).toContain(
    '<a href="/runs?after=7&amp;as_of=1#end"></a><a href="/api/health"></a><a href="?as_of=2"></a>',
  );
  expect(main).toContain('<form action="/find" method="get"><input type="hidden" name="as_of" value="1"/></form>');
});

test("an error during rendering is passed on", async () => {
  const { make } = watched();
  const page = consolePage({
    reads: [],
    render() {
      throw new Error("a broken page");
    },
  });
  expect(await make(page).catch((fault: unknown) => fault)).toEqual(new Error("a broken page"));
});
