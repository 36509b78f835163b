// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { findPerson } from "../../projections/contact-identity.ts";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import { loadConfig } from "../../src/config/config.ts";
import { createConsole } from "../../src/console/render-console.ts";
import { deliveriesPage } from "../../src/console/pages/deliveries.tsx";
import { linksPage } from "../../src/console/pages/link-list-and-page.tsx";
import { overviewPage } from "../../src/console/pages/overview-and-attention.tsx";
import { peoplePage } from "../../src/console/pages/people.tsx";
import { resultsPage } from "../../src/console/pages/results.tsx";
import { runsPage } from "../../src/console/pages/run-list-and-page.tsx";
import type { ConsolePage } from "../../src/console/page-context.ts";
import { forgetPerson } from "../../src/privacy/forget-person-or-address.ts";
import { foldTo } from "../../src/projector/fold-to-moment.ts";
import { createPageMoments } from "../../src/projector/moment-of-console-page.ts";
import { createPastStates, type PastStates } from "../../src/projector/past-states.ts";
import { consoleSettings } from "../../src/service/shown-configuration.ts";
import { foldLog } from "../harness/fold-log.ts";
import { ENGINES, openInstance } from "../harness/in-process/open-one-of-several-instances.ts";
import { toOutreachRules } from "../../src/outreach/run-rules.ts";
import { createMixedLife } from "../harness/in-process/write-busy-service-log.ts";

/** Returns the outreach rules of a service without suppressions. */
const commonRules = async () =>
  toOutreachRules({
    config: loadConfig({}, () => ""),
    hashesOf: () => [],
    keyring: { isForgotten: () => false },
  } as never);

const PAGES: readonly ConsolePage[] = [overviewPage, peoplePage, runsPage, linksPage, resultsPage, deliveriesPage];

/** Number of events between two snapshots of the past, so small that a short log has several. */
const PAST_EVERY = 40;

/** Matches the number of recipients on the overview. It must be right for the position that the page shows. */
const RECIPIENTS = /Recipients <b>[^<]*<\/b> \(([\d,]+) →/;

test.each(ENGINES)(
  "with a log %s, past pages equal those of a full fold, also after an erasure",
  async (_name, where) => {
    await using stack = new AsyncDisposableStack();
    const world = await openInstance(stack, await where(stack));
    const { store, projector, eventLog } = world;
    const live = createMixedLife(store, (stream, newEvents) => eventLog.append(stream, newEvents, {}), 1_000);
    await live(15);
    const settings = consoleSettings(
      loadConfig({}, () => ""),
      { configured: [], recognisesMs: () => 0 },
      { hashesOf: () => [], commonRules, wantsToken: () => false, tokens: () => [] },
    );
    const processState = {
      awaySince: () => undefined,
      clockFault: () => undefined,
      instances: () => [],
      roles: async () => ({}),
      circuit: () => undefined,
      verification: () => undefined,
      lookup: () => undefined,
    };
    const truth: PastStates = { at: async (to, names) => (await foldLog(store, names, { to })).states };
    const pageOf = async (past: PastStates, page: ConsolePage, to: number): Promise<string> => {
      const clock = () => Date.parse("2100-01-01");
      const moments = createPageMoments({ store, projector, past, clock, timezone: "UTC" });
      const visit = { parameters: {}, query: new URLSearchParams({ as_of: String(to) }), formToken: undefined };
      const made = await createConsole({ moments, live: processState, settings }).render(page, {
        ...visit,
        notice: undefined,
        language: "en-GB",
      });
      if (made?.outcome !== "shown") throw new Error("no page");
      return made.text;
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
    // Forgets a recipient that a run has contacted, because the log then contains all kinds of personal data to erase.
    const options = { metadata: {}, signal: new AbortController().signal };
    await forgetPerson(world, (contacts) => findPerson(contacts, { username: "person_3" }), options);
    await live(2);
    await expectTruth();
  },
);
