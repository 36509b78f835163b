// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { findPerson } from "../../projections/contact-identity.ts";
import { encodeState } from "../../projections/encode-state.ts";
import type { LogConfig } from "../../src/config/database.ts";
import { createResults } from "../../src/history/results.ts";
import { GROUPINGS } from "../../src/history/results-figures.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { forgetPerson } from "../../src/privacy/forget-person-or-address.ts";
import { foldTo } from "../../src/projector/fold-to-moment.ts";
import { foldLog } from "../harness/fold-log.ts";
import { ENGINES, openInstance } from "../harness/in-process/open-one-of-several-instances.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { rebuildAll } from "./spoil-snapshots-and-rebuild.ts";

const NAMES = ["conversions", "results", "visits", "runs"] as const;
const [ANN, BEA] = [
  { id: "1001", username: "ann_builds" },
  { id: "1002", username: "bea_codes" },
];
const ANNS_CODE = "code-of-ann";

/** Opens a log whose events are a minute apart. */
async function openWorld(stack: AsyncDisposableStack, config: LogConfig) {
  let now = Date.parse("2026-11-20T23:50:00.000Z");
  const instance = await openInstance(stack, config, { clock: () => now, pastEvery: 3 });
  const append = async (...newEvents: NewEvent[]): Promise<void> => {
    now += 60_000;
    await instance.eventLog.append(STREAMS.outreach, newEvents, {});
  };
  return { ...instance, append };
}

/** Creates an intent to send a message. `template_name` is missing in older messages. */
function attempted(
  attempt_id: string,
  recipient: typeof ANN,
  code: string,
  named: { template_name?: string } = {},
): NewEvent {
  const text = { ...named, text: "Hi", template: "aaaa", variant: "A", links: ["go.example/x"], day: "2026-11-20" };
  const personal_links = [{ code, link: "go.example/x" }];
  return { type: "DirectMessageAttempted", data: { attempt_id, run_id: "r", recipient, ...text, personal_links } };
}

function sent(attempt_id: string, recipient: typeof ANN): NewEvent {
  const outcome = { attempt_id, run_id: "r", recipient, message_id: "m", settled_by: "answer" } as const;
  return { type: "DirectMessageSent", data: outcome };
}

async function tell({ append }: Awaited<ReturnType<typeof openWorld>>): Promise<void> {
  const personal = (code: string): NewEvent => ({ type: "PersonalLinkClicked", data: { code } });
  await append({ type: "RunStarted", data: { run_id: "r", dry_run: false } });
  await append({ type: "LinkAdded", data: { domain: "go.example", code: "x", target: "https://shop.example/" } });
  await append(attempted("1", ANN, ANNS_CODE));
  await append(sent("1", ANN));
  await append(clickOf({ visitor: 65 }), personal(ANNS_CODE));
  await append(attempted("2", BEA, "code-of-bea", { template_name: "Autumn invite" }), clickOf({ visitor: 129 }));
  await append(clickOf({ bot: true }), sent("2", BEA));
  await append(clickOf({ visitor: 193 }), personal("code-of-bea"));
  const reply = { recipient: ANN, message_id: "reply", received_at: "2026-11-21T01:00:00.000Z" };
  await append({ type: "DirectMessageReceived", data: reply });
  const counts = { sent: 2, skipped: 0, failed: 0, in_doubt: 0 };
  await append({ type: "RunFinished", data: { run_id: "r", reason: "completed", ...counts } });
  // These events are on the next day.
  for (let minute = 0; minute < 3; minute++)
    await append(clickOf({ visitor: 65 }), clickOf({ bot: true, probe: "head" }));
}

test.each(ENGINES)(
  "%s, results at any moment equal a replay, even after a rebuild and an erasure",
  async (_name, where) => {
    await using stack = new AsyncDisposableStack();
    const world = await openWorld(stack, await where(stack));
    const { store, projector } = world;
    const expectTruth = async (): Promise<void> => {
      const { position: head } = await store.head();
      for (let to = 0; to <= head; to++) {
        const found = await foldTo(store, NAMES, { to, keepSince: head, pastEvery: 3 });
        const { states } = await foldLog(store, NAMES, { to });
        for (const name of NAMES) expect(encodeState(found.states[name])).toBe(encodeState(states[name]));
        for (const by of GROUPINGS) {
          const always = { from: undefined, to: undefined };
          expect(await createResults(found.states, by, always)).toEqual(await createResults(states, by, always));
        }
      }
      await projector.until(head);
      const { states } = await foldLog(store, NAMES);
      for (const name of NAMES) expect(encodeState(projector.state(name))).toBe(encodeState(states[name]));
    };
    const total = async () => {
      const states = {
        conversions: projector.state("conversions"),
        results: projector.state("results"),
        runs: projector.state("runs"),
        visits: projector.state("visits"),
      };
      return (await createResults(states, "variant", { from: undefined, to: undefined })).total.figures;
    };

    await tell(world);
    await expectTruth();
    const before = await total();
    expect(before).toMatchObject({
      sent: 2,
      replied: 1,
      clicks: { total: 6, unique: 4, suspected: 0, bots: 1, probes: 3 },
      tracked: { recipients: 2, clicked: 2, clicks: 2, suspected: 0, converted: 0, first_click_ms: 60_000 },
    });
    expect([...projector.state("results").templates]).toEqual([["aaaa", "Autumn invite"]]);
    expect(projector.state("runs").started.get("r")).toMatchObject({ end: { reason: "completed", sent: 2 } });
    await rebuildAll(store);
    await expectTruth();
    expect(await total()).toEqual(before);

    const options = { metadata: {}, signal: new AbortController().signal };
    await forgetPerson(world, (contacts) => findPerson(contacts, ANN), options);
    await expectTruth();
    const { tracked, click_rate: _, conversion_rate: __, ...after } = await total();
    const { tracked: ___, click_rate: ____, conversion_rate: _____, ...stood } = before;
    expect(after).toEqual(stood);
    expect(tracked).toEqual({
      recipients: 1,
      clicked: 1,
      clicks: 1,
      suspected: 0,
      converted: 0,
      first_click_ms: 60_000,
    });
    const states = NAMES.map((name) => encodeState(projector.state(name))).join("");
    expect(states).toContain("code-of-bea");
    for (const hers of [ANN.id, ANN.username, ANNS_CODE]) expect(states).not.toContain(hers);
  },
);
