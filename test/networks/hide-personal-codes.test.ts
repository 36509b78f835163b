// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES, projectionOf } from "../../projections/all.ts";
import { replay } from "../../src/commands/replay.ts";
import type { MakeCommand } from "../../src/commands/shared/command.ts";
import { openContext, runOnce } from "../../src/commands/shared/run-operation.ts";
import type { Terminal } from "../../src/commands/shared/terminal-answers-and-exit-codes.ts";
import { toCommand } from "../../src/commands/shared/operation-command.ts";
import { loadOperations } from "../../src/operations.ts";
import { isOptional, isReading } from "../../src/platform/operation.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { createStandardWebhookChannel } from "../../src/networks/event-webhook-channel.ts";
import { secret } from "../../src/platform/secret.ts";
import { capture, NO_TERMINAL } from "../harness/capture-command.ts";
import { ask, openApp, TOKEN } from "../harness/in-process/app.ts";
import { openCommands, type CommandHarness } from "../harness/in-process/commands.ts";
import { addedOf, clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { safeFetchTo, serve } from "../harness/in-process/local-test-servers.ts";
import { snapshotOf } from "../projector/spoil-snapshots-and-rebuild.ts";
import { audit, deliveries, recipients } from "../harness/in-process/operation-commands.ts";

/** Codes of personal links in the form that the product issues, one of them without digits. */
const [CODE, OTHER] = ["x7AbcDefGhiJk", "Zz9yXwVuTsRqP"] as const;
const HIDDEN = [CODE, OTHER].map(
  (code) => `hidden-${createHash("sha256").update(code).digest("hex").slice(0, 12)}`,
) as [string, string];
const ANN = { id: "1001", username: "ann" };
const TEXT = `Hi! https://go.example/${CODE} and https://go.example/${OTHER}`;

const HISTORY: readonly NewEvent[] = [
  addedOf(ANN, { tracking: "granted", tracking_at: "2025-03-02", tracking_source: "form" }),
  {
    type: "DirectMessageAttempted",
    data: {
      attempt_id: "a1",
      run_id: "r1",
      recipient: ANN,
      text: TEXT,
      variant: "A",
      links: ["go.example/shared"],
      personal_links: [CODE, OTHER].map((code) => ({ code, link: "go.example/shared" })),
      replaced_links: ["go.example/shared"],
      day: "2025-11-20",
    },
  },
  clickOf({ short_code: "shared", channels: ["chat"] }),
  { type: "PersonalLinkClicked", data: { code: CODE } },
  // This event renames the contact, so the contact also keeps a record of its earlier state. That record contains the
  // codes of the recipient's personal links too.
  addedOf({ ...ANN, username: "ann_2" }),
  ...(["ConversionRecorded", "ConversionReversed"] as const).map((type) => ({
    type,
    data: { name: "Lead", occurred_at: "2025-11-20T10:00:00.000Z", channels: [], code: OTHER },
  })),
];

/** Expects that a text contains `needle`, from the recipient's history, but no code of a personal link. */
function expectHidden(shown: string, needle = HIDDEN[0]): void {
  expect(shown).toContain(needle);
  for (const code of [CODE, OTHER]) expect(shown).not.toContain(code);
}

async function openWorld(): Promise<CommandHarness> {
  const world = await openCommands(undefined, { MESSAGE_TEMPLATE: "Hi" });
  await world.append(STREAMS.outreach, HISTORY);
  return world;
}

const COMMANDS: readonly (readonly [MakeCommand, string])[] = [
  [audit, "show @ann"],
  [audit, "show @ann --json"],
  [audit, "show 2 --json"],
];

test.each(COMMANDS.map(([command, args]) => [args, command] as const))(
  "audit %s shows no code of a recipient's personal link",
  async (args, command) => {
    await using world = await openWorld();
    const { out } = await world.run(command, ...args.split(" "));
    expectHidden(out);
  },
);

test("deliveries show prints no code of a webhook's dispatch", async () => {
  await using world = await openCommands(undefined, { MESSAGE_TEMPLATE: "Hi" });
  const data = { types: ["DirectMessageAttempted"], receiver: "mark" };
  await world.append(STREAMS.delivery("webhook"), [{ type: "WebhookSubscribed", data }]);
  await world.append(STREAMS.outreach, HISTORY);
  for (const json of [[], ["--json"]]) expectHidden((await world.run(deliveries, "show", "3", ...json)).out);
});

test("audit tail shows no code", async () => {
  await using world = await openWorld();
  for (const json of [[], ["--json"]]) {
    const stop = new AbortController();
    let shown = "";
    await capture(audit, ["tail", ...json], {
      env: world.env,
      signal: stop.signal,
      out(text) {
        shown += text;
        if (shown.includes("ann_2")) stop.abort(0);
      },
    });
    expectHidden(shown);
  }
});

/** Projections whose states contain codes, or the text of a message in flight. */
const WITH_CODES: readonly string[] = ["contacts", "links", "results", "run"];

test.each(PROJECTION_NAMES)("audit change shows no code of the state of %s", async (projection) => {
  await using world = await openWorld();
  for (const position of ["2", "4", "5", "6"])
    for (const json of [[], ["--json"]]) {
      const { out } = await world.run(audit, "change", position, "--projection", projection, ...json);
      expect(out).not.toMatch(new RegExp(`${CODE}|${OTHER}`));
      if (position === "2" && WITH_CODES.includes(projection)) expectHidden(out);
    }
});

test("a replay that finds a damaged state shows none of its codes", async () => {
  await using world = await openWorld();
  const { position } = await world.store.head();
  for (const name of PROJECTION_NAMES)
    await world.store.snapshots.save(name, snapshotOf(name, position, projectionOf(name).initial()));
  expectHidden((await world.run(replay)).out, "hidden-");
});

/** Values for the required inputs of operations. */
const INPUT: Readonly<Record<string, string>> = {
  recipient: "ann_2",
  subject: "ann_2",
  event: "2",
  projection: "contacts",
  event_id: "3",
  name: "default",
};

const READING = (await loadOperations()).filter(isReading);

test.each(READING)("$name shows no code on the command line or to an assistant", async (described) => {
  await using world = await openWorld();
  const { input, positional = [] } = described;
  const named = positional.filter((member) => !isOptional(input[member]!) || member in INPUT);
  const options = described.name === "audit change" ? ["--projection", INPUT["projection"]!] : [];
  const words = named.map((member) => INPUT[member]!);
  const { out } = await world.run(toCommand(described), ...words, ...options, "--json");
  const given = Object.fromEntries(Object.entries(INPUT).filter(([member]) => member in input));
  const assistant: Terminal = { ...NO_TERMINAL, env: world.env, caller: "mcp" };
  await using context = await openContext(assistant, described);
  const told = JSON.stringify(await runOnce(assistant, described, context, given));
  expect(told).toStartWith("{");
  for (const shown of [out, told]) for (const code of [CODE, OTHER]) expect(shown).not.toContain(code);
});

test("a webhook's receiver gets no code", async () => {
  await using world = await openWorld();
  await using receiver = serve(() => new Response());
  const webhook = createStandardWebhookChannel({
    url: secret(receiver.url),
    secrets: secret(`whsec_${Buffer.alloc(32).toString("base64")}`),
    isInOrder: false,
    name: "webhook",
    filter: undefined,
    headers: new Map(),
    safeFetch: safeFetchTo(receiver.url),
  });
  for await (const event of world.store.read({ types: ["DirectMessageAttempted", "PersonalLinkClicked"] })) {
    const { id, time } = event as Recorded;
    await webhook.send({ kind: "event", id, time, event: event as Recorded }, { timeoutMs: 60_000, now: Date.now() });
    expectHidden(receiver.requests.at(-1)!.body);
  }
});

test("evidence and proofs contain no code; the owner's export does", async () => {
  await using world = await openWorld();
  const [evidence, proof] = ["evidence.json", "proof"].map((name) => join(world.directory, name)) as [string, string];
  await world.run(recipients, "evidence", "ann_2", "--out", evidence);
  expectHidden(readFileSync(evidence, "utf8"));
  await world.run(audit, "prove", "2", "--plain", "--out", proof);
  expectHidden(readFileSync(`${proof}.jsonl`, "utf8"));
  expect((await world.run(audit, "export")).out).toContain(CODE);
});

test("the console, the API's exports and the event stream show no code", async () => {
  await using harness = await openApp({ tokens: true });
  await harness.append(STREAMS.outreach, ...HISTORY);
  const PATHS = [
    "/activity?show=everything",
    "/activity/2",
    "/activity/2?projection=contacts",
    "/activity/2?projection=links",
    "/activity/2?projection=results",
    "/activity/4",
    "/activity/5?projection=contacts",
    "/people/1001",
    "/",
    "/api/audit/export",
    "/api/audit/export?format=csv",
    "/api/audit/export?format=cloudevents",
  ];
  const body = new URLSearchParams({ token: TOKEN }).toString();
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const signedIn = await ask(harness.app, "/session", { method: "POST", body, headers: form });
  const cookie = signedIn.headers.get("set-cookie")!.split(";")[0]!;
  for (const path of PATHS) {
    const answer = await ask(harness.app, path, { headers: { cookie } });
    expect([path, answer.status]).toEqual([path, 200]);
    const text = await answer.text();
    expect([path, text.includes(CODE) || text.includes(OTHER)]).toEqual([path, false]);
    if (/export|people|2$/.test(path)) expect([path, text.includes(HIDDEN[0])]).toEqual([path, true]);
  }
  const stream = await ask(harness.app, "/events?from=1", { token: TOKEN });
  let streamed = "";
  for await (const bytes of stream.body ?? []) {
    streamed += new TextDecoder().decode(bytes);
    if (streamed.includes(`id: ${HISTORY.length}\n`)) break;
  }
  expectHidden(streamed);
});
