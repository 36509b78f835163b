// On the memory harness.
import { expect, test } from "bun:test";
import { findPerson } from "../../projections/contacts.ts";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import { loadConfig } from "../../src/config/config.ts";
import { createPastPages, type PastVisit } from "../../src/console/console.ts";
import { renderPage } from "../../src/console/document.tsx";
import { deliveriesPage } from "../../src/console/pages/deliveries.tsx";
import { linksPage } from "../../src/console/pages/links.tsx";
import { overviewPage } from "../../src/console/pages/overview.tsx";
import { peoplePage } from "../../src/console/pages/people.tsx";
import { resultsPage } from "../../src/console/pages/results.tsx";
import { runsPage } from "../../src/console/pages/run.tsx";
import type { ConsolePage } from "../../src/console/page-context.ts";
import { forgetPerson } from "../../src/privacy/forget.ts";
import { foldTo } from "../../src/projector/fold-to.ts";
import { createPastStates, type PastStates } from "../../src/projector/past-states.ts";
import { consoleSettings } from "../../src/service/shown-configuration.ts";
import { foldLog } from "../harness/fold-log.ts";
import { ENGINES, openInstance } from "../harness/memory/instance.ts";
import { createMixedLife } from "../harness/memory/mixed-life.ts";

const PAGES: readonly ConsolePage[] = [overviewPage, peoplePage, runsPage, linksPage, resultsPage, deliveriesPage];

/** Small, so that a short log has snapshots of the past. */
const PAST_EVERY = 40;

/** The number of recipients that the overview shows for its position. */
const RECIPIENTS = /Recipients <b>[^<]*<\/b> \(([\d,]+) →/;

test.each(ENGINES)(
  "%s, pages of a moment are those of a full fold, also once a recipient of then is forgotten",
  async (_name, where) => {
    await using stack = new AsyncDisposableStack();
    const world = await openInstance(stack, await where(stack));
    const { store, projector, eventLog } = world;
    const live = createMixedLife(store, (stream, newEvents) => eventLog.append(stream, newEvents, {}), 1_000);
    await live(15);
    const settings = consoleSettings(
      loadConfig({}, () => ""),
      { configured: [], recognisesMs: () => 0 },
      { hashesOf: () => [], wantsToken: () => false, tokens: () => [] },
    );
    const truth: PastStates = { at: async (to, names) => (await foldLog(store, names, { to })).states };
    const pageOf = async (past: PastStates, page: ConsolePage, to: number): Promise<string> => {
      const visit: PastVisit = {
        parameters: {},
        query: new URLSearchParams({ as_of: String(to) }),
        store,
        settings,
        notice: undefined,
        span: undefined,
        stateNow: (name) => projector.state(name),
        hasNow: (name, position) => projector.isFolded(name) && projector.position >= position,
        asOf: String(to),
        present: Date.parse("2100-01-01"),
      };
      const made = await createPastPages(past)(page, visit);
      if (made.outcome !== "shown" || made.page === undefined || "location" in made.page) throw new Error("no page");
      return renderPage("page" in made.page ? made.page.page : made.page);
    };
    const expectTruth = async (): Promise<void> => {
      const { position: head } = await store.head();
      await projector.until(head);
      await foldTo(store, PROJECTION_NAMES, { to: head, keepSince: head, pastEvery: PAST_EVERY });
      expect((await store.snapshots.list("past/")).length).toBeGreaterThan(20);
      const past = createPastStates({ store, projector, stopping: new AbortController().signal });
      for (const part of [0.3, 0.8, 1]) {
        const to = Math.floor(head * part);
        for (const page of PAGES) expect(await pageOf(past, page, to)).toBe(await pageOf(truth, page, to));
        const { people } = (await foldLog(store, ["contacts"], { to })).states.contacts;
        const [, said] = RECIPIENTS.exec(await pageOf(past, overviewPage, to)) ?? [];
        expect(said).toBe(people.size.toLocaleString("en-US"));
      }
    };

    await expectTruth();
    // A run has contacted this recipient, so the log contains all kinds of personal data to erase.
    const options = { metadata: {}, signal: new AbortController().signal };
    await forgetPerson(world, (contacts) => findPerson(contacts, { username: "person_3" }), options);
    await live(2);
    await expectTruth();
  },
);
