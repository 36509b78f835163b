// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { parseTemplate, chooseVariant } from "../../src/template/template.ts";
import type { Basis, Recipient } from "../../events/outreach.ts";
import { createStates } from "../../projections/fold-states.ts";
import { previewOutreach } from "../../src/outreach/preview.operations.ts";
import { RULES } from "../harness/in-process/simulated-outreach-processes.ts";
import { openCommands, type CommandHarness } from "../harness/in-process/commands.ts";
import { outreach } from "../harness/in-process/operation-commands.ts";

const TEMPLATE = "Hi {{name}}, {{company}}\n---\nHello {{name}},\nabout {{company|you}}";
const { id: TEMPLATE_ID } = parseTemplate(TEMPLATE);

interface Row {
  readonly name?: string;
  readonly company?: string;
  readonly basis?: Basis;
}

function added(recipient: Recipient, { name, company, basis = "opt_in" }: Row = {}): NewEvent {
  const fields = company === undefined ? {} : { company };
  const called = name === undefined ? {} : { name };
  return { type: "RecipientAdded", data: { recipient, ...called, basis, fields, source: "list" } };
}

/** Opens a log with these events, and sets a message template. */
async function worldWith(newEvents: readonly NewEvent[]): Promise<CommandHarness> {
  const world = await openCommands();
  Object.assign(world.env, { MESSAGE_TEMPLATE: TEMPLATE });
  await world.append(STREAMS.outreach, newEvents);
  return world;
}

/** Returns an id whose recipient gets this variant of the template. `number` makes the ids of several calls differ. */
function idFor(variant: string, number: number): string {
  for (let id = 1_786_000_000_000_000 + number * 1_000; ; id++) {
    if (chooseVariant(parseTemplate(TEMPLATE), String(id)).label === variant) return String(id);
  }
}

const ANN = { id: idFor("A", 1), username: "ann" };
const BEA = { id: idFor("B", 2), username: "bea" };

test("each variant is shown for its first possible recipient, with its number of recipients", async () => {
  const dora = { id: idFor("B", 4), username: "dora" };
  const people = [
    added(ANN, { name: "Ann" }),
    added(dora, { name: "Dora" }),
    added(BEA, { name: "Bea", company: "Acme" }),
    added({ id: idFor("B", 3), username: "cy" }, { name: "Cy", company: "Beta" }),
  ];
  await using world = await worldWith(people);
  const { code, out } = await world.run(outreach, "preview");
  expect(code).toBe(0);
  // Variant A needs a company. Ann, whose variant is A, has none and would be skipped. Dora has none either, so the
  // preview shows variant A for Bea.
  expect(out).toStartWith(`template ${TEMPLATE_ID}

variant A for @bea (${BEA.id}); 0 recipients get it
  Hi Bea, Acme

variant B for @dora (${dora.id}); 3 recipients get it
  Hello Dora,
  about you
`);
  expect(out).toContain(`\n1 would be skipped, missing_field: @ann (${ANN.id})\n(as of position 4, `);
});

test("a template with a name is shown with it", async () => {
  await using world = await worldWith([added(ANN)]);
  Object.assign(world.env, { MESSAGE_TEMPLATE_NAME: "Autumn invite" });
  expect((await world.run(outreach, "preview")).out).toStartWith(`template Autumn invite (${TEMPLATE_ID})\n`);
  const { out } = await world.run(outreach, "preview", "--json");
  expect(JSON.parse(out)).toMatchObject({ template: TEMPLATE_ID, template_name: "Autumn invite" });
});

test("recipients who would be skipped are counted by reason, and the first are named", async () => {
  const closed = ["d1", "d2", "d3"].map((username) => added({ username }, { basis: "none" }));
  const suppressed: NewEvent = { type: "RecipientSuppressed", data: { recipient: ANN, reason: "by_hand" } };
  const attempt = { attempt_id: "1", run_id: "r", recipient: BEA };
  const failure: readonly NewEvent[] = [
    { type: "DirectMessageAttempted", data: { ...attempt, text: "Hi", variant: "A", day: "2025-11-20" } },
    {
      type: "DirectMessageFailed",
      data: { ...attempt, reason: "rejected", detail: "", frees_quota: true, retry: false },
    },
  ];
  const open = added({ username: "eve" }, { company: "Acme" });
  await using world = await worldWith([added(ANN), suppressed, added(BEA), ...failure, ...closed, open]);
  const { out } = await world.run(outreach, "preview", "--limit", "2");
  expect(out).toContain("3 would be skipped, no_consent: @d1, @d2 and 1 more\n");
  expect(out).toContain(`1 would be skipped, suppressed: @ann (${ANN.id})\n`);
  expect(out).toContain("1 failed: only reachlog recipients retry");
  // The log does not know Eve's id, on which her variant depends.
  expect(out).toContain("1 known by handle only");
  expect(out.match(/; 0 recipients get it, and a share of the 1 whose id only X knows\n/g)).toHaveLength(2);

  const { out: json } = await world.run(outreach, "preview", "--limit", "0", "--json");
  expect(JSON.parse(json)).toMatchObject({
    template: TEMPLATE_ID,
    undecided: 1,
    failed: 1,
    variants: [
      { variant: "A", recipients: 0, recipient: { username: "eve" }, text: "Hi [name], Acme", missing: [] },
      { variant: "B", recipients: 0, recipient: { username: "eve" }, text: "Hello [name],\nabout Acme", missing: [] },
    ],
    skips: expect.arrayContaining([
      { reason: "suppressed", count: 1, recipients: [] },
      { reason: "no_consent", count: 3, recipients: [] },
    ]),
  });
});

test("held recipients are counted apart from those whose message failed, and so is the one asked for", async () => {
  const held: NewEvent = {
    type: "RecipientHeld",
    data: { recipient: ANN, message_id: "m", received_at: "2026-03-01T08:00:00.000Z" },
  };
  const campaign: NewEvent = {
    type: "CampaignCreated",
    data: { name: "spring", text: "Hi", audience: { messaged: "default" } },
  };
  await using world = await worldWith([added(ANN, { company: "Acme" }), held, added(BEA), campaign]);
  const { out } = await world.run(outreach, "preview");
  expect(out).toContain("1 held: their reply waits for reachlog recipients release or suppress\n");
  expect(out).not.toContain("failed");
  const json = async (...args: string[]) => JSON.parse((await world.run(outreach, "preview", ...args, "--json")).out);
  expect(await json()).toMatchObject({ failed: 0, held: 1 });
  expect((await world.run(outreach, "preview", "ann")).out).toContain("this recipient's reply waits for");
  expect((await json("ann")).requested).toMatchObject({ verdict: "pass", reason: "held" });
  const asked = ["bea", "--campaign", "spring"];
  const left = { verdict: "pass", reason: "not_in_audience", detail: "not_messaged" };
  expect((await json(...asked)).requested).toMatchObject(left);
  expect((await world.run(outreach, "preview", ...asked)).out).toContain(
    "this recipient would be skipped: not_in_audience (not_messaged)\n",
  );
});

test("--variant and --basis filter the recipients, and an unknown variant is refused", async () => {
  await using world = await worldWith([
    added(ANN, { company: "Acme" }),
    added(BEA),
    added({ username: "cy" }, { basis: "none" }),
  ]);
  const ofB = await world.run(outreach, "preview", "--variant", "B");
  expect(ofB.out).toContain("variant A: 0 recipients get it; no recipient to show it for");
  expect(ofB.out).toMatch(/variant B for .*; 1 recipient gets it/);
  expect((await world.run(outreach, "preview", "--basis", "opt_in")).out).not.toContain("no_consent");
  const unknown = world.run(outreach, "preview", "--variant", "C").catch((reason: unknown) => reason);
  expect(await unknown).toMatchObject({ kind: "usage", message: expect.stringContaining("variants: A, B") });
});

test("a single variant counts all recipients, also those without a known id", async () => {
  await using world = await worldWith([added({ username: "eve" }), added({ username: "cy" }), added(ANN)]);
  Object.assign(world.env, { MESSAGE_TEMPLATE: "Hi {{name}}" });
  const { out } = await world.run(outreach, "preview");
  expect(out).toContain("; 3 recipients get it\n");
  expect(out).not.toContain("known by handle only");
});

test("mistakes in the message cause a warning, and invisible characters are made visible", async () => {
  await using world = await worldWith([added(ANN)]);
  Object.assign(world.env, { MESSAGE_TEMPLATE: "Hi {name},\tget\u001b it\u200b\n\nnow" });
  const { out } = await world.run(outreach, "preview");
  expect(out).toContain("  Hi {name},␉get␛ it<U+200B>\n  \n  now\n");
  expect(out).toContain('line 1: "{name}" is sent as it stands; a placeholder is {{name}}\n');
});

test("a misspelt placeholder is noted, and another consent of a recipient without one is named", async () => {
  const consent = { basis: "opt_in", consent_at: "2025-01-01", consent_source: "form" } as const;
  await using world = await worldWith([
    added(ANN, { company: "Acme" }),
    { type: "ConsentRecorded", data: { recipient: ANN, ...consent, consent_for: "newsletter" } },
    { type: "CampaignCreated", data: { name: "events", text: "Hi {{ctiy}}, reply STOP", audience: {} } },
  ]);
  const { out } = await world.run(outreach, "preview", "--campaign", "events");
  expect(out).toContain("no imported recipient has ctiy; import it or give a fallback {{field|text}}");
  const named = await world.run(outreach, "preview", "ann", "--campaign", "events", "--json");
  const { requested } = JSON.parse(named.out) as { requested: { reason: string; detail: string } };
  expect(requested.reason).toBe("no_consent");
  expect(requested.detail).toEndWith('; consented to "newsletter", this campaign is "events"');
});

test("a preview of a campaign warns of its own text, not of the message in the settings", async () => {
  await using world = await worldWith([added(ANN)]);
  Object.assign(world.env, { MESSAGE_TEMPLATE: "Hi, reply STOP" });
  const data = { name: "spring", text: "Hi", audience: {} };
  await world.append("outreach", [{ type: "CampaignCreated", data }]);
  const preview = async (...args: string[]) => (await world.run(outreach, "preview", ...args)).out;
  expect(await preview("--campaign", "spring")).toContain("Variants without a way to opt out: A.");
  expect(await preview()).not.toContain("without a way to opt out");
});

test("the sending window is shown with its current state", async () => {
  await using world = await worldWith([added(ANN)]);
  Object.assign(world.env, { SEND_WINDOW: "Mon-Sun 00:00-24:00" });
  expect((await world.run(outreach, "preview")).out).toContain(
    "\nsending window: Mon-Sun 00:00-24:00 in UTC; now open in UTC; outside of it a run ends\n",
  );
});

test("a named recipient is shown all variants, and the reason to be skipped", async () => {
  await using world = await worldWith([added(ANN, { name: "Ann", basis: "none" })]);
  await world.append(STREAMS.outreach, [added({ username: "other" }, { basis: "none" })]);
  const { out } = await world.run(outreach, "preview", "@ANN");
  expect(out).not.toContain("@other");
  expect(out).toContain(`variant A for @ann (${ANN.id}); 0 recipients get it\n  it lacks company\n`);
  expect(out).toContain(`variant B for @ann (${ANN.id}); 0 recipients get it\n  Hello Ann,\n  about you\n`);
  expect(out).toContain("\nthis recipient would be skipped: no_consent\n");
  await world.append(STREAMS.outreach, [added(ANN, { name: "Ann", company: "Acme" })]);
  const again = await world.run(outreach, "preview", "ann");
  expect(again.out).toContain("\nthis recipient would get variant A, unless X says that they cannot\n");
  expect(again.out).toContain("\n1 would be skipped, no_consent\n");
});

test("a name that only the network knows is shown as a placeholder, with a note", async () => {
  await using world = await worldWith([added({ username: "ann" }, { company: "Acme" })]);
  const { out } = await world.run(outreach, "preview");
  expect(out).toContain("  Hi [name], Acme\n");
  expect(out).toContain("\n[name] is filled in from X when the message is sent\n");
});

test("control characters of a template or a recipient do not reach the terminal", async () => {
  await using world = await worldWith([added(ANN, { name: "A\u202Enn\u001b[2J", company: "\u001b[31mAcme" })]);
  Object.assign(world.env, { MESSAGE_TEMPLATE: "Hi {{name}}\u001b]0;x\u0007 of {{company}}" });
  const { out } = await world.run(outreach, "preview");
  expect(out).not.toMatch(/[^\P{Cc}\n]|\u202e/u);
});

test("an unknown recipient and a missing template are refused", async () => {
  await using world = await worldWith([added(ANN)]);
  expect(world.run(outreach, "preview", "@unknown")).rejects.toThrow("No recipient has that name");
  delete world.env["MESSAGE_TEMPLATE"];
  expect(await world.run(outreach, "preview").catch((reason: unknown) => reason)).toMatchObject({
    kind: "configuration",
    message: "MESSAGE_TEMPLATE is not set.",
  });
});

test("a preview is repeated if a state was replaced during it", async () => {
  const states = Array.from({ length: 2 }, () =>
    createStates(["run", "quota", "contacts", "account", "links", "campaigns"]).all(),
  );
  let reads = 0;
  const place = { position: 1, time: undefined, moment: {} };
  const reader = {
    store: undefined as never,
    clock: Date.now,
    // In the first attempt, the first of two reads returns a state that is out of date.
    at: async () => ({ ...place, states: states[Math.min(1, reads++)]! }) as never,
    config: {
      outreach: { template: parseTemplate("Hi"), stopWords: [], sources: ["list"], window: undefined, timezone: "UTC" },
    },
    commonRules: async () => ({ ...RULES, template: parseTemplate("Hi") }),
  };
  expect(await previewOutreach.run(reader as never, {}, {})).toMatchObject({ skips: [], undecided: 0 });
  expect(reads).toBe(4);
});

test("a preview appends nothing", async () => {
  await using world = await worldWith([added(ANN)]);
  const head = await world.store.head();
  await world.run(outreach, "preview");
  expect(await world.store.head()).toEqual(head);
});

test.each(["nothing", "preview a b", "preview --limit -1", "preview --limit x", "watch x", "reconcile x"])(
  "outreach %s is a usage error",
  async (line) => {
    await using world = await worldWith([]);
    const args = line.split(" ").filter((arg) => arg !== "");
    expect(await world.run(outreach, ...args).catch((reason: unknown) => reason)).toMatchObject({ kind: "usage" });
  },
);
