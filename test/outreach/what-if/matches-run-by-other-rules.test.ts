// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Recorded } from "../../../events/event-types-and-codec.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { toSendWindow } from "../../../src/config/send-window.ts";
import { openSource } from "../../../src/outreach/sources/open-sources.ts";
import type { RulesInForce } from "../../../src/outreach/run-rules.ts";
import { createWhatIf, type WhatIf } from "../../../src/outreach/what-if/decide-recorded-runs-again.ts";
import { parseTemplate } from "../../../src/template/template.ts";
import { METADATA } from "../../harness/in-process/temporary-log.ts";
import { addedOf } from "../../harness/in-process/make-recipient-and-click-events.ts";
import { openOutreach, RULES, type OutreachHarness } from "../../harness/in-process/simulated-outreach-processes.ts";
import { person } from "../../harness/in-process/social-network.ts";
import { dayIn } from "../../../src/outreach/quota-day.ts";
import { isWhole } from "../../harness/case-count.ts";
import { selection } from "../model/initial-state.ts";

/** Number of random histories: all with the fault tests, a part of them with the ordinary tests. */
const HISTORIES = isWhole ? 150 : 15;

const HOUR_MS = 3_600_000;

/** Maximum duration of a run, in ms: longer than any sending window in these histories stays closed. */
const RUN_MAX_MS = 30 * HOUR_MS;

const IDS = Array.from({ length: 9 }, (_, at) => String(100 + at));
const id = fc.constantFrom(...IDS);

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("run" as const), selection: fc.option(selection, { nil: {} }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("import" as const),
      ids: fc.uniqueArray(id, { minLength: 1, maxLength: 5 }),
      basis: fc.constantFrom("opt_in" as const, "none" as const),
      hasEvidence: fc.boolean(),
      hasTown: fc.boolean(),
      timezone: fc.constantFrom(undefined, "America/New_York", "Pacific/Kiritimati"),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("suppress" as const), id }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/**
 * fast-check generator of a history. Every run ends before the next step, so a request for a run never finds one in
 * progress.
 */
const history = fc.record({
  hour: fc.nat(23),
  steps: fc.array(fc.record({ days: fc.constantFrom(0, 0, 2, 3), step }), { minLength: 3, maxLength: 14 }),
});

const WINDOWS = [undefined, "Mon-Sun 08:00-12:00", "Mon-Fri 00:00-24:00", "Mon-Sun 20:00-06:00"];

const rules = fc
  .record({
    dailyLimit: fc.integer({ min: 1, max: 6 }),
    requireConsent: fc.constantFrom<RulesInForce["requireConsent"][]>(true, false, "evidence"),
    template: fc
      .constantFrom("Hi {{name}}", "Hi {{name}} of {{town}}", "Hi {{name}}\n---\nHello {{name}}")
      .map((text) => parseTemplate(text)),
    timezone: fc.constantFrom("UTC", "Pacific/Kiritimati"),
    window: fc.constantFrom(...WINDOWS),
    zone: fc.constantFrom("quota" as const, "recipient" as const),
  })
  .map(({ window, zone, ...rest }) => ({ ...rest, window, zone }));
type Asked = typeof history extends fc.Arbitrary<infer T> ? T : never;
type Rules = typeof rules extends fc.Arbitrary<infer T> ? T : never;

function toRulesInForce({ window, zone, ...rest }: Rules, whenClosed: "end" | "pause"): RulesInForce {
  return {
    ...rest,
    stopAfterFailures: undefined,
    gapDays: 30,
    window: window === undefined ? undefined : toSendWindow({ text: window, zone, whenClosed }),
  };
}

interface Given {
  readonly hour: number;
  readonly steps: readonly { readonly days: number; readonly step: Step }[];
  /**
   * Number of days after the start of each run in which no other step follows, so that the run can wait for its sending
   * window.
   */
  readonly daysOfRun: number;
}

/** Plays a history under these rules in a log of its own. */
async function live({ hour, steps, daysOfRun }: Given, under: RulesInForce) {
  const world = await openOutreach();
  for (const one of IDS) world.network.people.set(one, person(one));
  const { timezone, ...own } = under;
  const { runner } = await world.start({
    rules: { ...RULES, ...own },
    timezone,
    runMaxMs: RUN_MAX_MS,
    spacingMs: 0,
    sources: [openSource("again"), openSource("list"), openSource("inbound"), openSource("last")],
  });
  let at = world.time.now() + hour * HOUR_MS;
  for (const { days, step: happening } of steps) {
    at += days * 24 * HOUR_MS;
    world.time.jump(Math.max(0, at - world.time.now()));
    if (happening.do === "run") {
      const triggered = await runner.trigger({ dryRun: false, selection: happening.selection, metadata: METADATA });
      if (triggered.kind === "started") await triggered.done;
      at += daysOfRun * 24 * HOUR_MS;
    } else await world.append(toEvents(happening));
  }
  return world;
}

function toEvents(happening: Exclude<Step, { do: "run" }>): NewEvent[] {
  if (happening.do === "suppress") {
    return [{ type: "RecipientSuppressed", data: { recipient: { id: happening.id }, reason: "by_hand" } }];
  }
  const { ids, basis, hasEvidence, hasTown, timezone } = happening;
  const evidence = hasEvidence ? { consent_at: "2026-01-01", consent_source: "form" } : {};
  const fields: Record<string, string> = hasTown ? { town: "Ulm" } : {};
  return ids.map((one) => addedOf({ id: one }, { basis, fields, ...evidence, ...(timezone && { timezone }) }));
}

async function ask(world: OutreachHarness, today: RulesInForce, changes: RulesInForce): Promise<WhatIf> {
  const identities = { hashes: RULES.hashes, isForgotten: RULES.isForgotten };
  const asked = { changes, isBot: undefined, stopWords: undefined, today, runMaxMs: RUN_MAX_MS, identities };
  const whatIf = createWhatIf({ ...asked, sources: ["list", "inbound"], limit: IDS.length });
  for await (const batch of world.store.readFolded()) for (const event of batch) whatIf.take(event);
  return whatIf.finish(world.time.now() + RUN_MAX_MS);
}

/** Returns, for each day, the number of messages and the number of skips for each reason. */
async function countDays(world: OutreachHarness, timezone: string): Promise<Record<string, Record<string, number>>> {
  const days: Record<string, Record<string, number>> = {};
  const count = (day: string, what: string): void => {
    const counts = (days[day] ??= {});
    counts[what] = (counts[what] ?? 0) + 1;
  };
  for (const { data } of await world.events("DirectMessageAttempted")) count(data.day, "messages");
  for (const { data, time } of await world.events("DirectMessageSkipped"))
    count(dayIn(timezone, Date.parse(time)), data.reason);
  return days;
}

function answered({ days }: WhatIf, side: "was" | "would", unchanged: Record<string, Record<string, number>>) {
  const counted = { ...unchanged };
  for (const [day, { messages, skipped }] of days) {
    const counts = Object.fromEntries([
      ["messages", messages[side]],
      ...[...skipped].map(([reason, two]) => [reason, two[side]]),
    ] as [string, number][]);
    counted[day] = Object.fromEntries(Object.entries(counts).filter(([, n]) => n > 0));
    if (Object.keys(counted[day]).length === 0) delete counted[day];
  }
  return counted;
}

/** Returns the id of each recipient who got a message, with the day of the last one. */
function messaged(attempted: readonly Recorded<"DirectMessageAttempted">[]): Record<string, string> {
  return Object.fromEntries(attempted.map(({ data }) => [data.recipient.id, data.day]));
}

/**
 * Example: a run waits for the sending window of one time zone, uses up its daily quota in that of another, and reaches
 * a source that costs money.
 */
const ENDED_AT_PAID_SOURCE: [Asked, Rules, Rules, "pause"] = (() => {
  const found = { do: "import", basis: "opt_in", hasEvidence: false, hasTown: false } as const;
  const run = { days: 3, step: { do: "run", selection: {} } } as const;
  const one = { dailyLimit: 1, requireConsent: true, template: parseTemplate("Hi {{name}}"), zone: "quota" } as const;
  const steps: Asked["steps"] = [
    { days: 0, step: { ...found, ids: ["100", "101"], timezone: "America/New_York" } },
    { ...run, days: 0 },
    { days: 3, step: { ...found, ids: ["105"], timezone: undefined } },
    run,
  ];
  const other = { ...one, timezone: "Pacific/Kiritimati", window: "Mon-Sun 08:00-12:00", zone: "recipient" } as const;
  return [{ hour: 8, steps }, { ...one, timezone: "UTC", window: undefined }, other, "pause"];
})();

test("a what-if with other rules matches a second log that ran by them", async () => {
  const met = { differing: 0, messages: 0, paused: 0 };
  await fc.assert(
    fc.asyncProperty(
      history,
      rules,
      rules,
      fc.constantFrom("end" as const, "pause" as const),
      async (asked, one, other, whenClosed) => {
        const given = { ...asked, daysOfRun: whenClosed === "pause" ? 2 : 0 };
        const [was, would] = [toRulesInForce(one, "end"), toRulesInForce(other, whenClosed)];
        await using first = await live(given, was);
        await using second = await live(given, would);
        const found = await ask(first, was, would);
        const before = await countDays(first, was.timezone);
        expect(answered(found, "would", before)).toEqual(await countDays(second, would.timezone));
        expect(answered(found, "was", before)).toEqual(before);
        const recipients = messaged(await first.events("DirectMessageAttempted"));
        for (const { recipient, would: after } of [
          found.recipients.lost,
          found.recipients.gained,
          found.recipients.moved,
        ].flatMap(({ shown }) => shown)) {
          delete recipients[recipient.id ?? ""];
          if (after.day !== null) recipients[recipient.id ?? ""] = after.day;
        }
        expect(recipients).toEqual(messaged(await second.events("DirectMessageAttempted")));
        expect(found.unexplained).toBe(0);
        met.differing += found.days.size > 0 ? 1 : 0;
        met.messages += found.total.messages.would;
        met.paused += (await second.events("RunPaused")).length;
      },
    ),
    { numRuns: HISTORIES, examples: [ENDED_AT_PAID_SOURCE] },
  );
  console.log(met);
  // Each count must be more than HISTORIES / 15 in a whole run. Otherwise one is enough: pauses are rare, and the
  // history ENDED_AT_PAID_SOURCE, which is always tried, may be the only one with a pause.
  expect(Math.min(met.differing, met.messages, met.paused)).toBeGreaterThan(isWhole ? HISTORIES / 15 : 0);
});

test("recipients who were named for a run get their turn alone and first under other rules too", async () => {
  await using world = await openOutreach(...IDS);
  const other = await world.start();
  expect(await other.run({ recipients: [{ id: "108" }] })).toMatchObject({ sent: 1 });
  let joined: unknown;
  const { run } = await world.start({
    network: {
      ...world.network,
      async sendDm(token, recipientId, text) {
        joined ??= await other.runner.trigger({ dryRun: false, metadata: METADATA, recipients: [{ id: "107" }] });
        return world.network.sendDm(token, recipientId, text);
      },
    },
  });
  expect(await run({ selection: { limit: 2 } })).toMatchObject({ sent: 2 });
  expect(world.network.accepted.map(({ recipientId }) => recipientId)).toEqual(["108", "100", "107"]);
  const { template, dailyLimit, requireConsent, stopAfterFailures, window, gapDays } = RULES;
  const today = { template, dailyLimit, requireConsent, stopAfterFailures, window, gapDays, timezone: "UTC" };
  const whatIf = await ask(world, today, { ...today, dailyLimit: 50 });
  expect(whatIf).toMatchObject({ days: new Map(), total: { messages: { was: 3, would: 3 } }, unexplained: 0 });
});
