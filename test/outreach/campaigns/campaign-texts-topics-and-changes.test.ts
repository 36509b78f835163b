// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { CampaignDefinition } from "../../../events/campaign.ts";
import { campaigns } from "../../../projections/campaigns.ts";
import { loadConfig } from "../../../src/config/config.ts";
import { STREAMS, type NewEvent } from "../../../src/log/event-log.ts";
import { changeCampaign, createCampaign } from "../../../src/outreach/campaigns/campaigns.operations.ts";
import { rulesForCampaign } from "../../../src/outreach/run-rules.ts";
import { parseTemplate } from "../../../src/template/template.ts";
import { openCommands } from "../../harness/in-process/commands.ts";
import { LOG_ENGINES, METADATA, type LogEngine } from "../../harness/in-process/temporary-log.ts";
import { addedOf } from "../../harness/in-process/make-recipient-and-click-events.ts";
import { campaigns as commands, outreach } from "../../harness/in-process/operation-commands.ts";
import { openOutreach, openOutreachOn, RULES } from "../../harness/in-process/simulated-outreach-processes.ts";
import { person } from "../../harness/in-process/social-network.ts";

const FAULT = "line 1, column 1: {{optout}} needs PUBLIC_URL, an address that recipients can open";

const created = (text: string): NewEvent => ({ type: "CampaignCreated", data: { name: "spring", text, audience: {} } });

/** Returns the rules of a campaign with this text, for settings without LINK_BASE and PUBLIC_URL. */
function rulesWith(text: string) {
  const state = campaigns.initial();
  campaigns.evolve(state, { ...created(text), position: 1, time: "2026-03-01" } as never);
  const { template, textFault } = rulesForCampaign(RULES, state, "spring");
  return { texts: template.variants.map(({ label }) => label), text: template.text, textFault };
}

describe("a campaign whose text the settings cannot send", () => {
  test("keeps its variants and the fault in its rules", () => {
    const optOut = "Hi {{optout}}\n---\nHo";
    expect(rulesWith(optOut)).toEqual({ texts: ["A", "B"], text: optOut, textFault: FAULT });
    const link = "Hi {{link https://a.example}}";
    expect(rulesWith(link)).toMatchObject({ text: link, textFault: expect.stringContaining("needs LINK_BASE") });
    expect(rulesWith("Hi {{name")).toMatchObject({ text: "-", textFault: expect.stringContaining("not closed") });
    expect(rulesWith("Hi").textFault).toBeUndefined();
  });

  test("starts no run and no dry run, also for named recipients", async () => {
    await using world = await openOutreach("10");
    await world.append([created("Hi {{optout}}")]);
    const { runner } = await world.start();
    const refused = { kind: "unusable_text", campaign: "spring", fault: FAULT } as const;
    const request = { selection: { campaign: "spring" }, metadata: METADATA };
    expect(await runner.trigger({ ...request, dryRun: false })).toEqual(refused);
    expect(await runner.trigger({ ...request, dryRun: true })).toEqual(refused);
    expect(await runner.trigger({ ...request, dryRun: false, recipients: [{ id: "10" }] })).toEqual(refused);
    expect(await world.events("RunStarted")).toEqual([]);
  });

  test("does not take recipients into its run from an instance that cannot send it", async () => {
    await using world = await openOutreach("10", "11");
    await world.append([{ type: "CampaignCreated", data: { name: "spring", text: "Hi {{optout}}", audience: {} } }]);
    const template = parseTemplate("-", undefined, undefined, "https://o.example");
    const able = await world.start({ rules: { ...RULES, template } });
    const unable = await world.start();
    const request = { dryRun: false, selection: { campaign: "spring" }, metadata: METADATA };
    const started = await able.runner.trigger(request);
    const joined = await unable.runner.trigger({ ...request, recipients: [{ id: "11" }] });
    expect([started.kind, joined.kind]).toEqual(["started", "unusable_text"]);
  });

  test("is shown and counted by commands, with the fault, and has no preview", async () => {
    await using world = await openCommands();
    const recipient = { username: "ann" };
    await world.append(STREAMS.outreach, [
      created("Hi {{optout}}"),
      { type: "RecipientAdded", data: { recipient, basis: "opt_in", fields: {}, source: "list" } },
    ]);
    expect((await world.run(commands, "show", "spring")).out).toContain(`no run of it can start: ${FAULT}\n`);
    expect((await world.run(commands, "count", "spring")).out).toContain("1 recipient not now: unusable text");
    const previewed = await world.run(outreach, "preview", "--campaign", "spring").catch((error: unknown) => error);
    const message = `The settings cannot send the campaign's text: ${FAULT}.`;
    expect(previewed).toMatchObject({ kind: "configuration", message });
    await world.append(STREAMS.outreach, [{ type: "CampaignEnded", data: { name: "spring" } }]);
    expect((await world.run(commands, "show", "spring")).out).not.toContain(FAULT);
  });
});

test("a command changes a campaign's gap and topic, and removes them", async () => {
  await using world = await openCommands(undefined, { CONTACT_GAP_DAYS: "20" });
  const show = async () => {
    const { out } = await world.run(commands, "show", "spring", "--json");
    const { campaign } = JSON.parse(out) as { campaign: { gap_days: number; topic: string | null; text: string } };
    return [campaign.text, campaign.gap_days, campaign.topic];
  };
  const change = async (...args: string[]) => (await world.run(commands, "change", "spring", ...args)).code;
  const given = ["--text", "Hi", "--gap-days", "25", "--topic", "news"];
  expect((await world.run(commands, "create", "spring", ...given)).code).toBe(0);
  expect(await show()).toEqual(["Hi", 25, "news"]);
  // `show` gives the longer of CONTACT_GAP_DAYS and the campaign's own gap. The campaign keeps its own 25 days when
  // only its text changes.
  world.env["CONTACT_GAP_DAYS"] = "40";
  expect([await change("--text", "Ho"), await show()]).toEqual([0, ["Ho", 40, "news"]]);
  world.env["CONTACT_GAP_DAYS"] = "20";
  expect([await change("--topic", ""), await show()]).toEqual([0, ["Ho", 25, null]]);
  expect([await change("--gap-days", "0"), await show()]).toEqual([0, ["Ho", 20, null]]);
  // A consent's topic is trimmed, so one with spaces around it would cover no campaign.
  expect([await change("--topic", " news "), await show()]).toEqual([0, ["Ho", 20, "news"]]);
  const { position } = await world.store.head();
  expect([await change(), await change("--text", "Ho", "--topic", "news"), await world.store.head()]).toMatchObject([
    0,
    0,
    { position },
  ]);
});

test("a command warns of a text without a way to opt out, and of fields that no recipient has", async () => {
  await using world = await openCommands(undefined, {
    PUBLIC_URL: "http://localhost:1",
    MESSAGE_TEMPLATE: "{{optout}}",
  });
  await world.append(STREAMS.outreach, [addedOf({ username: "ann" }, { fields: { city: "Rome" } })]);
  const warned = async (...args: string[]) => (await world.run(commands, ...args)).out;
  const created = "The campaign spring was created, for all recipients.";
  const without = "Variants without a way to opt out: B. Add {{optout}}, or a sentence with one of STOP_WORDS.";
  expect(await warned("create", "spring", "--text", "{{optout}}\n---\n{{city}}")).toBe(`${created} ${without}\n`);
  const missing = "no imported recipient has nmae; import it or give a fallback {{field|text}}.";
  const changed = "The campaign spring was changed, for all recipients.";
  expect(await warned("change", "spring", "--text", "{{nmae}} {{town|here}} {{optout}}")).toBe(
    `${changed} ${missing}\n`,
  );
});

test.each(LOG_ENGINES)(
  "a change of a campaign that another operator changed meanwhile is refused: in a log %s",
  async (engine) => {
    await using world = await openOutreachOn(engine);
    await world.append([created("Hi")]);
    const { context, projector } = await world.start();
    const { outreach, links } = loadConfig({}, () => "");
    const changing = { ...context, config: { outreach, links } } as never;
    const change = (text: string, changed_at: string) =>
      changeCampaign.run(changing, { name: "spring", text, changed_at }, METADATA);
    const read = () => projector.state("campaigns").named.get("spring")!;
    const { changed_at } = read();
    world.time.jump(1_000);
    expect(await change("one", changed_at)).toMatchObject({ campaign: { text: "one" } });
    expect(await change("two", changed_at)).toMatchObject({ refusal: "campaign_changed" });
    // A client that got no answer sends its change once more.
    expect(await change("one", changed_at)).toMatchObject({ campaign: { text: "one" } });
    expect(await world.events("CampaignChanged")).toHaveLength(1);
    const newer = read().changed_at;
    world.time.jump(1_000);
    const together = await Promise.all([change("two", newer), change("three", newer)]);
    expect(together).toContainEqual(expect.objectContaining({ refusal: "campaign_changed" }));
    expect(together).toContainEqual(
      expect.objectContaining({ campaign: expect.objectContaining({ text: read().text }) }),
    );
  },
);

test.each(LOG_ENGINES)("topics that differ by case are one, as the first is spelt: in a log %s", async (engine) => {
  await using world = await openOutreachOn(engine);
  const consent = { recipient: { id: "7" }, basis: "opt_in", consent_for: "NEWS" } as const;
  await world.append([
    { type: "ConsentRecorded", data: consent },
    { type: "ConsentRecorded", data: { ...consent, basis: "none", consent_for: "news" } },
  ]);
  const { context, projector } = await world.start();
  const { outreach, links } = loadConfig({}, () => "");
  const saving = { ...context, config: { outreach, links } } as never;
  const create = (name: string, topic: string) =>
    createCampaign.run(saving, { name, text: "Hi, reply STOP", topic }, METADATA);
  expect(await create("one", "News")).toMatchObject({ campaign: { topic: "News" }, notes: [] });
  const notes = ['the topic is spelt "News", as in another campaign: case makes no other topic'];
  expect(await create("two", " NEWS ")).toMatchObject({ campaign: { topic: "News" }, notes });
  const change = (name: string, topic: string) => changeCampaign.run(saving, { name, topic }, METADATA);
  expect(await change("one", "news")).toMatchObject({ campaign: { topic: "News" }, notes });
  expect(await change("two", "")).toMatchObject({ campaign: { topic: null }, notes: [] });
  expect(await change("one", "news")).toMatchObject({ campaign: { topic: "news" }, notes: [] });
  expect(projector.state("campaigns").named.get("one")).toMatchObject({ topic: "news" });
  const contact = [...projector.state("contacts").people.values()].find(({ id }) => id === "7");
  expect(contact?.consents_for).toEqual({ NEWS: { basis: "none" } });
  const recorded = (await world.events("ConsentRecorded")) as { data: { consent_for: string } }[];
  expect(recorded.map(({ data }) => data.consent_for)).toEqual(["NEWS", "news"]);
});

test("a name that is taken is refused with what to do", async () => {
  await using world = await openCommands();
  await world.append(STREAMS.outreach, [created("Hi"), { type: "CampaignEnded", data: { name: "spring" } }]);
  const refused = await world.run(commands, "create", "spring", "--text", "Hi").then(
    ({ err }) => err,
    (error: Error) => error.message,
  );
  expect(refused).toContain("The name spring is taken, also once its campaign has ended. Choose another.");
});

describe("a campaign that is changed while its run is in progress", () => {
  const EVIDENCE = { consent_at: "2026-01-01", consent_source: "form" };
  const added = (id: string, city: string) => addedOf({ id }, { ...EVIDENCE, fields: { city } });

  /**
   * Runs a campaign for Rome and Pisa, and changes the campaign by `change` as soon as its first message is sent.
   * Returns the sent texts.
   */
  async function runChanged(engine: LogEngine, change: Partial<CampaignDefinition>) {
    await using world = await openOutreachOn(engine);
    const definition = { name: "spring", text: "Rome", audience: { fields: ["city=Rome|Pisa"] } };
    for (const id of ["10", "11", "12"]) world.network.people.set(id, person(id));
    const people = [added("10", "Rome"), added("11", "Rome"), added("12", "Pisa")];
    await world.append([{ type: "CampaignCreated", data: definition }, ...people]);
    const { sendDm } = world.network;
    world.network.sendDm = async (...asked) => {
      const isFirst = world.network.accepted.length === 0;
      const result = await sendDm(...asked);
      if (isFirst) await world.append([{ type: "CampaignChanged", data: { ...definition, ...change } }]);
      return result;
    };
    const { run } = await world.start();
    const { sent } = await run({ selection: { campaign: "spring" } });
    const attempts = await world.events("DirectMessageAttempted");
    expect(sent).toBe(attempts.length);
    return attempts.map(({ data: { recipient, text, template } }) => ({ id: recipient.id, text, template }));
  }

  test.each(LOG_ENGINES)("sends its new text to its new audience, never its old text: in a log %s", async (engine) => {
    const change = { text: "Pisa", audience: { fields: ["city=Pisa"] } };
    expect(await runChanged(engine, change)).toEqual([
      { id: "10", text: "Rome", template: parseTemplate("Rome").id },
      { id: "12", text: "Pisa", template: parseTemplate("Pisa").id },
    ]);
  });

  test("sends nothing more if the settings cannot send its new text", async () => {
    expect(await runChanged("in a file", { text: "Hi {{optout}}" })).toMatchObject([{ id: "10", text: "Rome" }]);
  });
});
