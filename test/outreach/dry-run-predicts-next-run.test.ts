// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Recipient, SkipReason } from "../../events/outreach.ts";
import { isSkipRecorded } from "../../src/outreach/decide.ts";
import { outreachState } from "../../src/outreach/run-context.ts";
import { openSource } from "../../src/outreach/sources/open-sources.ts";
import type { RunReport } from "../../src/outreach/execute-run.ts";
import { parseTemplate } from "../../src/template/template.ts";
import { OWN, person, type Answer } from "../harness/in-process/social-network.ts";
import { openOutreach, RULES, type OutreachHarness } from "../harness/in-process/simulated-outreach-processes.ts";
import { countCases } from "../harness/case-count.ts";

const WORLDS = countCases(150);

const DAY_MS = 24 * 3_600_000;

const PEOPLE = ["10", "11", "12", "13", "14", "15"];
const anyId = fc.constantFrom(...PEOPLE, OWN.id);

/** fast-check generator of the profile that the network shows of a person, or of no profile. */
const look = fc.record({
  known: fc.constantFrom(true, true, true, false),
  receivesOurDm: fc.constantFrom(true, true, false),
  protected: fc.constantFrom(false, false, true),
});

const imported = fc.record({
  id: anyId,
  by: fc.constantFrom("id", "handle", "both"),
  basis: fc.constantFrom("opt_in", "opt_in", "none"),
  hasTown: fc.boolean(),
});

/**
 * fast-check generator of the changes that happen before a run: profiles, imports, suppressions, received messages,
 * allowed retries.
 */
const phase = fc.record({
  looks: fc.array(look, { minLength: PEOPLE.length, maxLength: PEOPLE.length }),
  imports: fc.array(imported, { maxLength: 6 }),
  suppressed: fc.array(anyId, { maxLength: 1 }),
  messages: fc.array(fc.record({ id: anyId, text: fc.constantFrom("hello", "hello", "stop") }), { maxLength: 4 }),
  retried: fc.array(anyId, { maxLength: 2 }),
});
type Instance = Awaited<ReturnType<OutreachHarness["start"]>>;
type Phase = typeof phase extends fc.Arbitrary<infer T> ? T : never;

const answer = fc.constantFrom<(Answer | undefined)[]>(undefined, "recipient_closed", "not_permitted", "unreachable");

/** Sources of recipients, in the order in which a run reads them. */
const SOURCES = [
  openSource("list"),
  openSource("inbound"),
  openSource("followers"),
  openSource("list_members", { listId: "1" }),
];

const given = fc.record({
  sources: fc.shuffledSubarray(SOURCES, { minLength: 1 }),
  requireConsent: fc.boolean(),
  template: fc.constantFrom("Hi {{name}}", "Hi {{name}} of {{town}}"),
  pageMax: fc.constantFrom(2, 100),
  dailyLimit: fc.integer({ min: 1, max: 8 }),
  before: phase,
  answers: fc.array(answer, { maxLength: 4 }),
  now: phase,
});

async function enter({ network, append }: OutreachHarness, { looks, imports, suppressed, messages, retried }: Phase) {
  network.people.clear();
  for (const [at, id] of PEOPLE.entries()) {
    const { known = true, ...shown } = looks[at] ?? {};
    if (known) network.people.set(id, person(id, shown));
  }
  for (const { id, by, basis, hasTown } of imports) {
    const recipient = { ...(by === "handle" ? {} : { id }), ...(by === "id" ? {} : { username: `User_${id}` }) };
    const fields: Record<string, string> = hasTown ? { town: "Ulm" } : {};
    await append([{ type: "RecipientAdded", data: { recipient, basis, fields, source: "list" } }]);
  }
  for (const id of suppressed) {
    await append([{ type: "RecipientSuppressed", data: { recipient: { id }, reason: "by_hand" } }]);
  }
  for (const id of retried) await append([{ type: "RecipientRetryAllowed", data: { recipient: { id } } }]);
  for (const { id, text } of messages) network.receive(id, text);
}

/**
 * Repeats dry runs until one learns nothing, and returns its preview. An earlier one records new messages, and which id
 * a handle has, so its preview may differ from what the run then does.
 */
async function rehearse({ events }: OutreachHarness, { run, projector }: Instance): Promise<RunReport["preview"]> {
  const learned = async () => ({
    events: (await events("DirectMessageReceived", "RecipientSuppressed")).length,
    people: [...projector.state("contacts").people.values()].map(({ id, username }) => ({ id, username })),
  });
  for (;;) {
    const before = await learned();
    const { preview } = await run({ dryRun: true });
    if (Bun.deepEquals(await learned(), before)) return preview;
  }
}

/** Describes a skip, with the handle in lower case: an import and the network may write it differently. */
function named({ recipient, reason }: { recipient: Recipient; reason: SkipReason }): string {
  return `${recipient.id} ${recipient.username?.toLowerCase()} ${reason}`;
}

test("a dry run predicts the messages, skips, end and highest cost of the next run", async () => {
  await fc.assert(
    fc.asyncProperty(
      given,
      async ({ sources, requireConsent, template, pageMax, dailyLimit, before, answers, now }) => {
        await using world = await openOutreach();
        world.network.pageMax = pageMax;
        world.network.lists.set("1", PEOPLE.toReversed());
        const rules = { ...RULES, requireConsent, dailyLimit, template: parseTemplate(template) };
        const instance = await world.start({
          rules,
          sources: [openSource("again"), ...sources, openSource("last")],
        });
        const { run, context } = instance;
        await enter(world, before);
        world.network.answers.push(...answers);
        await run();
        world.network.answers.length = 0;
        world.time.jump(DAY_MS);
        await enter(world, now);

        const preview = await rehearse(world, instance);
        const known = structuredClone(outreachState(context));
        const { reason, run_id, usage } = await run();
        const told = await world.events("DirectMessageAttempted", "DirectMessageSkipped");
        const ofRun = told.filter(({ data }) => data.run_id === run_id);
        const sent = ofRun.flatMap(({ type, data }) => (type === "DirectMessageAttempted" ? [data] : []));
        const skipped = ofRun.flatMap(({ type, data }) => (type === "DirectMessageSkipped" ? [data] : []));
        expect(preview?.reason).toBe(reason);
        expect(usage.usd).toBeLessThanOrEqual(preview?.estimate.usd ?? 0);
        expect(preview?.would_send).toEqual(sent.map(({ recipient, text, variant }) => ({ recipient, text, variant })));
        // A skip is recorded once per person and reason, so the run records only the previewed skips that the log did
        // not have yet.
        const news = preview?.would_skip.filter(
          (skip) => !isSkipRecorded(known, context.rules, skip.recipient, skip.reason),
        );
        expect(news?.map(named)).toEqual(skipped.map(named));
      },
    ),
    { numRuns: WORLDS },
  );
});
