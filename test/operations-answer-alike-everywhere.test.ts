// These tests start the service or commands as processes.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { describeEndpoints } from "../src/http/endpoints.ts";
import type { LogStore } from "../events/event-types-and-codec.ts";
import { createEventLog, STREAMS, type NewEvent } from "../src/log/event-log.ts";
import { isOperationWord, loadOperations } from "../src/operations.ts";
import { makeId } from "../src/platform/clock-ids-and-timers.ts";
import { isReading, type AnyOperation } from "../src/platform/operation.ts";
import { captureCommandLine, withLog } from "./harness/capture-command.ts";
import { outcomeOf } from "./harness/in-process/dispatch-outcome-events.ts";
import { authorize, BEARER, openInstallation, type Installation, type Running } from "./harness/process.ts";
import { onRuntime } from "./harness/bun-deno-or-binary.ts";

const OPERATIONS = await loadOperations();

/** Inputs of each operation. Each comes with what the answer must begin with, or with the fault in the input. */
const INPUTS: Readonly<
  Record<string, readonly (readonly [input: Record<string, string>, expected: object | string])[]>
> = {
  stats: [
    [{}, { sent: 1, skipped: 2, failed: 2 }],
    [{ as_of: "1" }, { sent: 0, skipped: 0, failed: 0, as_of: { position: 1 } }],
    [
      { by: "day", as_of: "1" },
      { sent: 0, timezone: "UTC", periods: expect.any(Array) },
    ],
    [{ as_of: "tomorrow" }, 'a moment is a position, a day or an ISO 8601 time, not "tomorrow"'],
    [{ as_of: "999999" }, "it has no position 999999"],
  ],
  results: [
    [{}, { by: "variant", total: { sent: 1, previous: null }, omitted: 0, previous_interval: null }],
    [
      { by: "run", from: "2001-01-01", to: "2001-01-31" },
      { by: "run", rows: [], interval: { to: "2001-02-01T00:00:00.000Z" } },
    ],
    [{ as_of: "1" }, { rows: [], as_of: { position: 1 } }],
    [{ from: "7" }, "an interval is between days or times"],
    [{ from: "2026-11-21", to: "2026-11-20" }, "the interval ends before it begins"],
    [{ as_of: "999999" }, "it has no position 999999"],
  ],
  "campaigns list": [
    [{}, { campaigns: [{ name: "default", created_at: null, gap_days: 30 }, {}, {}, {}] }],
    [{ as_of: "0" }, { campaigns: [{ name: "default" }], as_of: { position: 0 } }],
    [{ as_of: "999999" }, "it has no position 999999"],
  ],
  "campaigns show": [
    [{ name: "planted" }, { campaign: { name: "planted", audience: { messaged: "default" }, follow_up: 1 } }],
    [{ name: "default" }, { campaign: { name: "default", follow_up: 0 } }],
  ],
  "campaigns count": [
    [{}, { matching: expect.any(Number), due: expect.any(Number), left_out: [] }],
    [{ name: "planted" }, { left_out: [{ reason: "not_messaged", recipients: expect.any(Number) }] }],
    [{ source: "inbound" }, { matching: 0, left_out: [{ reason: "other_source" }] }],
  ],
  quota: [
    [{}, { counted: "day", used: 1, limit: 100, remaining: 99 }],
    [{ as_of: "0" }, { day: null, used: 0, resets_at: null, as_of: { position: 0, time: null } }],
  ],
  clicks: [
    [{}, { clicks: 2, bots: 0, links: [{ link: "go.example/spring", clicks: 2 }], others: { clicks: 0 } }],
    [{ link: "https://GO.example/spring" }, { clicks: 2, links: [{ link: "go.example/spring" }] }],
    [{ link: "go.example/spring", as_of: "999999" }, "it has no position 999999"],
    [{ link: "spring" }, "a link is written domain/short_code"],
  ],
  "account show": [
    [{}, { user: { username: "acme_team" }, scopes: expect.any(Array), authorized: true }],
    [{ as_of: "1" }, { user: null, scopes: [], authorized: false, as_of: { position: 1 } }],
  ],
  runs: [
    [
      {},
      {
        count: 1,
        dry_runs: 1,
        next: null,
        runs: [
          { number: null, dry_run: true, caller: "tester" },
          { number: 1, sent: 1, end: "completed" },
        ],
      },
    ],
    [{ limit: "1" }, { runs: [{ number: null }], next: expect.any(Number) }],
    [
      { limit: "1", after: "46" },
      { runs: [{ number: 1, failed: 0 }], next: null },
    ],
    [{ as_of: "1" }, { runs: [], count: 0 }],
  ],
  "recipients list": [
    [
      {},
      {
        count: 5,
        next: null,
        recipients: [{ username: "ada_builds", status: "sent", name: null, position: 1 }, {}, {}, {}, {}],
      },
    ],
    [{ limit: "1" }, { count: 5, next: 1, recipients: [{ username: "ada_builds" }] }],
    [
      { limit: "1", after: "1" },
      { next: 2, recipients: [{ username: "ben_noconsent", basis: "none" }] },
    ],
    [{ as_of: "1" }, { count: 1, recipients: [{ username: "ada_builds", status: "open" }] }],
    [{ held: "true" }, { count: 2, recipients: [{ username: "ben_noconsent", held: true }, {}] }],
    [{ suppressed: "true" }, { count: 0, recipients: [] }],
    [{ status: "sent" }, { count: 1, recipients: [{ username: "ada_builds" }] }],
    [{ skipped: "no_consent" }, { count: 2, recipients: [{ username: "cid_erased" }, { username: "dee_erased" }] }],
    [{ as_of: "999999" }, "it has no position 999999"],
  ],
  "recipients show": [
    [
      { recipient: "@ada_builds" },
      { recipient: { username: "ada_builds", status: "sent" }, words: "Opted in; tracking unknown." },
    ],
    [
      { recipient: "ADA_builds", as_of: "1" },
      { recipient: { status: "open" }, as_of: { position: 1 } },
    ],
    [{ recipient: "ada_builds", as_of: "999999" }, "it has no position 999999"],
  ],
  "links list": [
    [
      {},
      {
        count: 2,
        next: null,
        links: [{ link: "go.example/one", template: null, variant: null }, { link: "go.example/two" }],
      },
    ],
    [{ limit: "1" }, { next: 1, links: [{ link: "go.example/one", target: "https://shop.example/1" }] }],
    [
      { limit: "1", after: "1" },
      { next: null, links: [{ link: "go.example/two" }] },
    ],
    [{ after: "2" }, { count: 2, next: null, links: [] }],
  ],
  "audit show": [
    [
      { subject: "@ada_builds" },
      {
        kind: "recipient",
        recipient: { username: "ada_builds" },
        summary: expect.stringContaining("sent\nOpted in"),
        events: [{ position: 1, type: "RecipientAdded", words: expect.stringContaining("was imported") }, {}, {}],
        next: null,
      },
    ],
    [
      { subject: "ada_builds", limit: "1" },
      { count: 3, next: 1, events: [{ position: 1 }] },
    ],
    [
      { subject: "ada_builds", newest: "true", limit: "1" },
      { count: 3, events: [{ type: "DirectMessageSent" }] },
    ],
    [
      { subject: "go.example/spring", limit: "1" },
      { kind: "link", recipient: null, next: expect.any(Number), events: [{ type: "LinkClicked" }] },
    ],
    [
      { subject: "1", as_of: "1" },
      { kind: "event", count: 1, summary: expect.stringMatching(/^position 1 is event /) },
    ],
    [{ subject: "no handle at all" }, "is neither a handle"],
    [{ subject: "1", as_of: "999999" }, "it has no position 999999"],
  ],
  "audit change": [
    [
      { event: "1", projection: "contacts" },
      { event: { position: 1 }, projection: "contacts", changes: [{ path: ["people", expect.any(String)] }, {}] },
    ],
    [
      { event: "1", projection: "stats" },
      { changes: [], as_of: { position: 0 } },
    ],
  ],
  "deliveries list": [
    [{}, { count: 4, next: null, dispatches: [{ status: "dead", http_status: 503, link: null }, {}, {}, {}] }],
    [
      { status: "in_doubt", channel: "chat" },
      { count: 2, dispatches: [{ channel: "chat", refused: null }, {}] },
    ],
    [
      { error: "4xx", limit: "1" },
      { count: 2, dispatches: [{ http_status: 400 }], next: expect.any(String) },
    ],
    [
      { channel: "ads", to: "2100-01-01" },
      { count: 0, dispatches: [] },
    ],
  ],
  "outreach preview": [
    [
      {},
      {
        variants: [{ variant: "A", recipients: 0 }],
        requested: null,
        skips: expect.any(Array),
        notes: [expect.stringContaining("way to opt out: A")],
      },
    ],
    [{ recipient: "@cid_erased", limit: "0" }, { requested: { verdict: "skip", reason: "no_consent" } }],
    [{ variant: "Z" }, "the variant is not one of the template's variants: A"],
  ],
  "token list": [[{}, { tokens: [{ name: "tester", links: null, source: "API_TOKENS" }], last_uses: "known" }]],
  "deliveries lag": [
    [{}, { channels: expect.arrayContaining([expect.objectContaining({ channel: "ads", backlog: 0 })]) }],
    [{ channel: "chat" }, { channels: [{ channel: "chat", configured: true, drained_in_seconds: 0 }] }],
  ],
  "deliveries channels": [
    [{}, { channels: expect.arrayContaining([expect.objectContaining({ channel: "chat", dead: 2, in_doubt: 2 })]) }],
    [{ as_of: "1" }, { channels: [{ channel: "ads", pending: 0, suspended: null }, {}, {}, {}] }],
    [{ as_of: "999999" }, "it has no position 999999"],
  ],
  "deliveries show": [
    [
      { event_id: "8" },
      {
        dispatches: [
          {
            source: { position: 8, type: "NotificationRequested" },
            channels: [{ channel: "chat", status: "dead", configured: true, events: [{ type: "DispatchAbandoned" }] }],
          },
        ],
      },
    ],
  ],
};

/** Returns a valid input of the operation. */
const anyInput = (name: string) => INPUTS[name]![0]![0];

const ERASED = {
  events: expect.any(Number),
  keys: expect.any(Number),
  id: expect.any(String),
  position: expect.any(Number),
};

const ALL = { all: "true", channel: "chat" };
const DECIDED = { done: 1, left: [], left_count: 0, until_position: expect.any(Number) };

/**
 * Input of `deliveries decide` over HTTP; the next one is for the command line. The test adds the dispatch to each once
 * its position is known.
 */
const DECIDED_OVER_HTTP: Record<string, string> = { channel: "chat", why: "seen" };
const DECIDED_BY_COMMAND: Record<string, string> = { channel: "messaging", why: "seen" };
const NONE_DECIDED = { done: 0, left: [] };

/**
 * For each operation that writes: an input over HTTP, a similar one on the command line, and the answer that both must
 * get.
 */
const WRITES: Readonly<
  Record<
    string,
    readonly [overHttp: Record<string, string>, typed: Record<string, string>, answer: Record<string, unknown>]
  >
> = {
  "recipients suppress": [{ recipient: "stranger" }, { recipient: "@other" }, { known: false }],
  "campaigns create": [
    { name: "spring", text: "Hi, reply STOP to opt out" },
    { name: "summer", text: "Hi, reply STOP to opt out", messaged: "default", days: "3" },
    { campaign: expect.objectContaining({ ended_at: null }), notes: [] },
  ],
  "campaigns change": [
    { name: "planted", text: "Hi again" },
    { name: "planted", gap_days: "60" },
    {
      campaign: expect.objectContaining({ name: "planted", text: "Hi again" }),
      notes: [expect.stringMatching(/^Variants without a way to opt out: A\./)],
    },
  ],
  "campaigns end": [
    { name: "over" },
    { name: "over-2" },
    { campaign: expect.objectContaining({ ended_at: expect.any(String) }) },
  ],
  "outreach stop": [{}, {}, { run_id: expect.any(String), status: "stopping" }],
  report: [{}, {}, { id: expect.any(String), report: expect.stringMatching(/^Run \d+, started /) }],
  "account unlink": [{}, {}, { unlinked: true, revoked: true }],
  "recipients retry": [{ recipient: "ben_noconsent" }, { recipient: "@eve_failed" }, { status: "open" }],
  "recipients release": [{ recipient: "ben_noconsent" }, { recipient: "@eve_failed" }, { held: false }],
  "recipients consent": [
    { recipient: "ben_noconsent", basis: "opt_in", consent_at: "2025-03-02" },
    { recipient: "@eve_failed", basis: "opt_in", tracking: "denied", tracking_source: "mail" },
    { known: true, basis: "opt_in", tracking: expect.stringMatching(/^(?:unknown|denied)$/) },
  ],
  "recipients forget": [
    { recipient: "cid_erased" },
    { recipient: "@dee_erased", ground: "objection", requested_by: "authority" },
    ERASED,
  ],
  "clicks forget": [{ ip: "203.0.113.7" }, { ip: "203.0.113.8", ground: "objection" }, ERASED],
  "deliveries retry": [{ ...ALL, error: "5xx" }, { ...ALL, channel: "messaging", error: "5xx" }, DECIDED],
  "deliveries discard": [
    { ...ALL, error: "400", why: "over" },
    { ...ALL, channel: "messaging", error: "400", why: "over" },
    DECIDED,
  ],
  "deliveries settle": [
    { ...ALL, as: "arrived", why: "seen" },
    { ...ALL, channel: "messaging", as: "left", why: "unknown" },
    DECIDED,
  ],
  "deliveries decide": [
    DECIDED_OVER_HTTP,
    DECIDED_BY_COMMAND,
    { arrived: NONE_DECIDED, leave: { done: 1, left: [] }, again: NONE_DECIDED },
  ],
  "outreach settle": [
    { recipients: "ada_builds", as: "left", why: "old" },
    { recipients: "@ada_builds", as: "arrived", why: "seen" },
    { done: 1 },
  ],
  "links add": [
    { code: "three", target: "https://shop.example/3" },
    { code: "four", target: "https://shop.example/4" },
    { link: expect.stringMatching(/^go.example\/(?:three|four)$/), known: false },
  ],
  "deliveries resume": [
    { channel: "webhook-one" },
    { channel: "webhook-two" },
    { channel: expect.stringMatching(/^webhook-/), suspended_since: expect.any(String) },
  ],
};

/**
 * Name of an operation -> function that prepares something for the operation to change. It runs before each call,
 * because the call before left nothing to change.
 */
const PREPARE: Readonly<Record<string, () => Promise<unknown>>> = {
  "outreach stop": () => {
    const started: NewEvent = { type: "RunStarted", data: { run_id: makeId(), dry_run: false } };
    return withLog(world.env, (log) => createEventLog(log, makeId).append(STREAMS.outreach, [started], {}));
  },
  "account unlink": () => authorize(service, world.sandbox),
  "outreach settle": () => {
    const data = { attempt_id: makeId(), run_id: makeId(), recipient: { id: "9009", username: "ada_builds" } };
    const inDoubt: NewEvent[] = [
      { type: "DirectMessageAttempted", data: { ...data, text: "Hi", variant: "A", day: "2026-03-01" } },
      { type: "DirectMessageInDoubt", data: { ...data, detail: "no answer" } },
    ];
    return withLog(world.env, (log) => createEventLog(log, makeId).append(STREAMS.outreach, inDoubt, {}));
  },
};

/**
 * Inputs that an operation refuses with a problem. Each comes with the problem's slug and the values that its sentence
 * contains.
 */
const REFUSED: readonly (readonly [
  name: string,
  input: Record<string, string>,
  slug: string,
  values?: Record<string, string>,
])[] = [
  ["clicks", { link: "go.example/never" }, "unknown-link"],
  ["campaigns show", { name: "never" }, "unknown-campaign"],
  ["campaigns count", { name: "never" }, "unknown-campaign"],
  [
    "campaigns count",
    { days: "3" },
    "unusable-audience",
    { why: "days, replied and failed need messaged beside them" },
  ],
  [
    "campaigns count",
    { fields: "town=Rome" },
    "unusable-audience",
    { why: "no imported recipient has the field town" },
  ],
  ["campaigns count", { clicked: "never" }, "unusable-audience", { why: "the log has no link never" }],
  ["campaigns create", { name: "planted", text: "Hi" }, "campaign-exists", { name: "planted" }],
  ["campaigns create", { name: "default", text: "Hi" }, "campaign-exists", { name: "default" }],
  [
    "campaigns create",
    { name: "new", text: "Hi {{name" },
    "unusable-campaign",
    { why: "line 1, column 4: {{ is not closed by }} on its line" },
  ],
  [
    "campaigns create",
    { name: "new", text: "Hi", gap_days: "29" },
    "unusable-campaign",
    { why: "the gap is below CONTACT_GAP_DAYS, 30 days" },
  ],
  [
    "campaigns create",
    { name: "new", text: "Hi", messaged: "never" },
    "unusable-campaign",
    { why: 'there is no campaign "never"' },
  ],
  ["campaigns change", { name: "never", text: "Hi" }, "unknown-campaign"],
  ["campaigns change", { name: "default", text: "Hi" }, "default-campaign"],
  [
    "campaigns change",
    { name: "planted", text: "Ho", changed_at: "2026-01-01T00:00:00.000Z" },
    "campaign-changed",
    { name: "planted" },
  ],
  ["campaigns end", { name: "never" }, "unknown-campaign"],
  ["campaigns end", { name: "default" }, "default-campaign"],
  ["audit show", { subject: "never_met" }, "unknown-subject"],
  ["audit show", { subject: "go.example/never" }, "unknown-subject"],
  ["audit change", { event: "999999", projection: "stats" }, "unknown-event"],
  ["recipients show", { recipient: "never_met" }, "unknown-recipient"],
  ["outreach stop", { run_id: "another" }, "no-run-in-progress"],
  [
    "outreach settle",
    { recipients: "never_met", as: "left", why: "old" },
    "no-message-in-doubt",
    { recipient: "@never_met" },
  ],
  [
    "outreach settle",
    { all: "true", expected: "7", as: "left", why: "old" },
    "number-changed",
    { number: "0", expected: "7" },
  ],
  ["deliveries decide", { channel: "chat", why: "seen" }, "nothing-chosen"],
  ["recipients retry", { recipient: "never_met" }, "unknown-recipient"],
  ["recipients retry", { recipient: "stranger" }, "suppressed"],
  ["recipients retry", { recipient: "ada_builds" }, "nothing-to-retry"],
  ["recipients release", { recipient: "never_met" }, "unknown-recipient"],
  ["recipients release", { recipient: "stranger" }, "suppressed"],
  [
    "recipients consent",
    { recipient: "ada_builds" },
    "unusable-consent",
    { why: "neither basis nor tracking is given" },
  ],
  [
    "recipients consent",
    { recipient: "ada_builds", tracking_source: "mail" },
    "unusable-consent",
    { why: "tracking_source needs tracking beside it" },
  ],
  ["recipients forget", { recipient: "never_met" }, "unknown-recipient"],
  ["clicks forget", { ip: "203.0.113.99" }, "unknown-address"],
  ["outreach preview", { recipient: "never_met" }, "unknown-recipient"],
  [
    "links add",
    { code: "one", target: "https://else.example/" },
    "code-taken",
    { code: "one", reason: "the code already has another target" },
  ],
  ["deliveries show", { event_id: "999999" }, "unknown-event", { event_id: "999999" }],
  ["deliveries show", { event_id: "1" }, "no-dispatch"],
  ["deliveries resume", { channel: "ads" }, "not-suspended", { channel: "ads" }],
  [
    "deliveries retry",
    { all: "true", channel: "ads", expected: "7" },
    "number-changed",
    { number: "0", expected: "7" },
  ],
];

const STATUS = { not_found: 404, conflict: 409, invalid: 422, usage: 422, configuration: 503 } as const;

/** Inputs that the schema of an operation refuses. */
const UNFIT: readonly (readonly [name: string, input: Record<string, string>])[] = [
  ["stats", { by: "week" }],
  ["results", { by: "colour" }],
  ["runs", { limit: "0" }],
  ["runs", { limit: "501" }],
  ["runs", { limit: "many" }],
  ["runs", { after: "-1" }],
  ["campaigns create", { name: "Spring", text: "Hi" }],
  ["campaigns create", { name: "new", text: " " }],
  ["campaigns count", { days: "0" }],
  ["campaigns count", { source: "followers" }],
  ["recipients list", { limit: "1001" }],
  ["audit show", { subject: "ada_builds", limit: "1001" }],
  ["audit change", { event: "0", projection: "stats" }],
  ["audit change", { event: "1", projection: "colours" }],
  ["recipients list", { status: "asleep" }],
  ["recipients show", { recipient: "no handle" }],
  ["recipients suppress", { recipient: "no handle" }],
  ["outreach stop", { run_id: "no id" }],
  ["outreach settle", { recipients: "ada_builds", as: "lost", why: "old" }],
  ["outreach settle", { as: "left", why: "old" }],
  ["deliveries decide", { channel: "fax", leave: "1", why: "seen" }],
  ["recipients retry", { recipient: "a".repeat(16) }],
  ["recipients release", { recipient: "Ä" }],
  ["recipients consent", { recipient: "ada_builds", basis: "sure" }],
  ["recipients consent", { recipient: "no handle", tracking: "denied" }],
  ["recipients forget", { recipient: "" }],
  ["recipients forget", { recipient: "ada_builds", ground: "boredom" }],
  ["clicks forget", { ip: "@ann" }],
  ["deliveries list", { after: "1" }],
  ["deliveries list", { limit: "501" }],
  ["deliveries show", { event_id: "x" }],
  ["deliveries resume", { channel: "fax" }],
  ["deliveries lag", { channel: "fax" }],
  ["outreach preview", { limit: "101" }],
  ["links add", { code: "a b", target: "https://shop.example/" }],
  ["deliveries retry", {}],
  ["deliveries retry", { error: "5xx" }],
  ["deliveries discard", { all: "true", why: " " }],
  ["deliveries settle", { all: "true", as: "lost", why: "seen" }],
];

const LINKS = "code,target\none,https://shop.example/1\ntwo,https://shop.example/2\n";

const READING = OPERATIONS.filter(isReading);
const WRITING = OPERATIONS.filter((one) => !isReading(one));

let world: Installation;
let service: Running;
let assistant: Client;

beforeAll(async () => {
  world = await openInstallation();
  await world.command(
    "recipients",
    "import",
    world.file(
      "people.csv",
      "username,basis\nada_builds,opt_in\nben_noconsent,none\ncid_erased,none\ndee_erased,none\neve_failed,none\n",
    ),
  );
  world.env["LINK_BASE"] = "https://go.example";
  await world.command("links", "import", world.file("links.csv", LINKS));
  await withLog(world.env, writeDispatches);
  await withLog(world.env, planCampaigns);
  await appendFailedAndHeld();
  service = await world.serve();
  const click = { event: "click", domain: "go.example", short_code: "spring", original_url: "https://shop.example/" };
  for (const ip of ["203.0.113.7", "203.0.113.8"]) await service.post("/api/tracking/event", { ...click, ip }, BEARER);
  await authorize(service, world.sandbox);
  await service.post("/social/run", {}, { ...BEARER, prefer: "wait=300" });
  await service.post("/social/run", { dry_run: true }, BEARER);
  assistant = new Client({ name: "test", version: "1" });
  const [command = "", ...args] = onRuntime(["mcp"]);
  await assistant.connect(new StdioClientTransport({ command, args, cwd: world.directory, env: world.env }));
});
afterAll(async () => {
  await assistant.close();
  await world[Symbol.asyncDispose]();
});

/** Adds two dead letters and two dispatches in doubt to each of chat and messaging, and two suspended webhooks. */
async function writeDispatches(log: LogStore): Promise<void> {
  const { append } = createEventLog(log, makeId);
  const requests = {
    chat: { type: "NotificationRequested", data: { message: "m", service: "s", level: "info" } },
    messaging: { type: "MessageRequested", data: { text: "m" } },
  } as const;
  for (const channel of ["chat", "messaging"] as const) {
    const request: NewEvent = requests[channel];
    const { first } = await append(STREAMS.requests, [request, request, request, request], {});
    (channel === "chat" ? DECIDED_OVER_HTTP : DECIDED_BY_COMMAND)["leave"] = String(first + 3);
    const about = (at: number) =>
      ({ source: first + at, channel, lane: "direct", mode: "single", detail: "no" }) as const;
    const refused = (at: number, status: number) =>
      outcomeOf("DispatchAbandoned", { ...about(at), status, refused: true });
    const outcomes = [
      refused(0, 400),
      refused(1, 503),
      outcomeOf("DispatchInDoubt", about(2)),
      outcomeOf("DispatchInDoubt", about(3)),
    ];
    await append(STREAMS.delivery(channel), outcomes, {});
  }
  for (const channel of ["webhook-one", "webhook-two"] as const) {
    const data = { channel, network: "standard_webhooks", detail: "gone", credential: "hash" };
    await append(STREAMS.delivery(channel), [{ type: "ChannelSuspended", data }], {});
  }
}

/** Adds campaigns that tests read, change and end. */
async function planCampaigns(log: LogStore): Promise<void> {
  const planned: NewEvent[] = ["planted", "over", "over-2"].map((name) => {
    return { type: "CampaignCreated", data: { name, text: "Hi", audience: { messaged: "default" } } };
  });
  await createEventLog(log, makeId).append(STREAMS.outreach, planned, {});
}

/**
 * Adds two recipients, each with a failed message and a held reply. The test uses the first over HTTP and the second on
 * the command line.
 */
async function appendFailedAndHeld(): Promise<void> {
  const people = ["ben_noconsent", "eve_failed"];
  const events = people.flatMap((username, at): NewEvent[] => {
    const recipient = { id: `900${at}`, username };
    const attempt = { attempt_id: makeId(), run_id: makeId(), recipient };
    const failed = { reason: "recipient_closed", detail: "", frees_quota: true, retry: false } as const;
    const held = { message_id: username, received_at: "2026-03-01T08:00:00.000Z" };
    return [
      { type: "DirectMessageAttempted", data: { ...attempt, text: "Hi", variant: "A", day: "2026-03-01" } },
      { type: "DirectMessageFailed", data: { ...attempt, ...failed } },
      { type: "RecipientHeld", data: { recipient, ...held } },
    ];
  });
  await withLog(world.env, (log) => createEventLog(log, makeId).append(STREAMS.outreach, events, {}));
}

/** Runs a command line beside the service, in the test's process. */
const runHere = (...words: string[]) => captureCommandLine(words, world.env);

/** The path of the endpoint with this id. */
function pathOf(id: string): string {
  const endpoint = describeEndpoints().find((one) => one.id === id);
  if (endpoint === undefined) throw new Error(`no endpoint has the id ${id}`);
  return endpoint.path;
}

function overHttp(described: AnyOperation, input: Record<string, string>): Promise<Response> {
  const path = pathOf(described.id);
  if (!isReading(described)) return service.post(path, asJson(input), BEARER);
  return service.get(`${path}?${new URLSearchParams(input)}`, { headers: BEARER });
}

/** The words of a command line: positional members become arguments, and a confirmation becomes a flag. */
function asWords({ name, positional = [], confirm }: AnyOperation, input: Record<string, string>): string[] {
  const [named, options] = [true, false].map((isNamed) =>
    Object.entries(input).filter(([member]) => positional.includes(member) === isNamed),
  ) as [[string, string][], [string, string][]];
  const flags = options.map(([member, value]) => {
    const flag = `--${member.replaceAll("_", "-")}`;
    return value === "true" ? flag : `${flag}=${value}`;
  });
  const sure = confirm === undefined ? [] : ["--yes"];
  return [...name.split(" "), ...named.map(([, value]) => value), ...flags, ...sure];
}

/** Returns the callers of all events, except of events that the service records by itself. */
async function readCallers(): Promise<readonly (string | undefined)[]> {
  const log = (await runHere("audit", "export")).out.trim().split("\n");
  const callers = log.map((line) => (JSON.parse(line) as { meta: { caller?: string } }).meta.caller);
  return callers.filter((caller) => caller === "tester" || caller === "command-line");
}

async function askAssistant(name: string, input: Record<string, unknown>) {
  const { content, isError = false } = await assistant.callTool({ name: name.replaceAll(" ", "_"), arguments: input });
  const [{ text } = { text: "" }] = content as readonly { readonly text: string }[];
  return { text, isError };
}

/** Returns the input as an assistant sends it in JSON, with numbers instead of texts. */
const asJson = (input: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(input).map(([name, value]) => {
      if (["limit", "after", "expected", "days", "gap_days"].includes(name) && /^\d+$/.test(value))
        return [name, Number(value)];
      if (["recipients", "arrived", "leave", "again", "fields", "timezones"].includes(name)) return [name, [value]];
      return [name, value === "true" ? true : value];
    }),
  );

test("each operation has test inputs, a command and an endpoint", () => {
  expect([...Object.keys(INPUTS), ...Object.keys(WRITES)].toSorted()).toEqual(
    OPERATIONS.map(({ name }) => name).toSorted(),
  );
  for (const { name, id } of OPERATIONS)
    expect([isOperationWord(name.split(" ")[0]), pathOf(id)]).toEqual([true, expect.any(String)]);
});

test("an assistant is offered exactly the operations that read", async () => {
  const { tools } = await assistant.listTools();
  const offered = OPERATIONS.filter(({ name }) => tools.some((tool) => tool.name === name.replaceAll(" ", "_")));
  expect(offered).toEqual(READING);
  expect(WRITING.length).toBeGreaterThan(0);
});

describe.each(READING)("$name", (described) => {
  const { name, list } = described;
  test.each(INPUTS[name] ?? [])(
    "answers %j alike over HTTP, on the command line and to an assistant",
    async (input, expected) => {
      const response = await overHttp(described, input);
      const command = await runHere(...asWords(described, input), "--json");
      const tool = await askAssistant(name, asJson(input));
      if (typeof expected === "string") {
        const { errors = [] } = (await response.json()) as { errors?: { message: string }[] };
        expect([response.status, errors.map(({ message }) => message).join()]).toEqual([
          422,
          expect.stringContaining(expected),
        ]);
        expect([command.code, command.err]).toEqual([2, expect.stringContaining(expected)]);
        expect([tool.isError, tool.text]).toEqual([true, expect.stringContaining(expected)]);
        return;
      }
      const answer = (await response.json()) as unknown;
      expect([response.status, answer]).toMatchObject([200, expected]);
      expect([command.code, command.err]).toEqual([0, ""]);
      if (list === undefined) expect(JSON.parse(command.out) as unknown).toEqual(answer);
      else {
        const { [list]: rows } = answer as Record<string, unknown>;
        const lines = command.out.split("\n").slice(0, -1);
        expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(rows as unknown[]);
      }
      expect(JSON.parse(tool.text) as unknown).toEqual(answer);
    },
  );

  test("prints a text that is not JSON", async () => {
    const { code, out } = await runHere(...asWords(described, anyInput(name)));
    const text = "as_of" in described.output ? /\(.*as of position \d+, .*\)\n$/ : /^[^{].*\n$/s;
    expect([code, out]).toEqual([0, expect.stringMatching(text)]);
  });
});

test.each(READING.filter(({ list }) => list !== undefined))(
  "$name prints all rows as lines of JSON if there is no limit",
  async (described) => {
    const { name, list = "", id } = described;
    const pages: Record<string, unknown>[] = [];
    for (let after = ""; pages.at(-1)?.["next"] !== null; after = String(pages.at(-1)!["next"])) {
      const query = new URLSearchParams({ ...anyInput(name), limit: "1", after });
      pages.push(
        (await (await service.get(`${pathOf(id)}?${query}`, { headers: BEARER })).json()) as (typeof pages)[0],
      );
    }
    const rows = pages.flatMap((page) => page[list] as unknown[]);
    expect(rows.length).toBeGreaterThan(1);
    const { out } = await runHere(...asWords(described, anyInput(name)), "--json");
    expect(out).toBe(rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  },
);

describe.each(WRITING)("$name", (described) => {
  const [sent, typed, answer] = WRITES[described.name]!;

  test("does the same over HTTP and on the command line, and its events name the caller", async () => {
    const prepare = PREPARE[described.name];
    await prepare?.();
    const before = (await readCallers()).length;
    const response = await overHttp(described, sent);
    const answered = (await response.json()) as Record<string, unknown>;
    expect(response.status).toBe(["outreach stop", "report"].includes(described.name) ? 202 : 200);
    expect(answered).toEqual(answer);
    await prepare?.();
    const command = await runHere(...asWords(described, typed), "--json");
    expect([command.code, command.err]).toEqual([0, ""]);
    const printed = JSON.parse(command.out) as object;
    expect(printed).toEqual(answer);
    expect(Object.keys(printed)).toEqual(Object.keys(answered));
    expect((await readCallers()).slice(before)).toEqual(["tester", "command-line"]);
  });

  test("requires --yes without a terminal if it cannot be undone", async () => {
    if (described.confirm === undefined) return;
    const words = asWords(described, sent).filter((word) => word !== "--yes");
    const { code, err } = await runHere(...words);
    expect([code, err]).toEqual([
      2,
      expect.stringContaining(`${described.name} asks for confirmation: add --yes, or run it on a terminal`),
    ]);
  });
});

test.each(UNFIT)("%s refuses %j on every surface", async (name, input) => {
  const described = OPERATIONS.find((one) => one.name === name)!;
  expect((await overHttp(described, input)).status).toBe(422);
  expect((await runHere(...asWords(described, input))).code).toBe(2);
  if (isReading(described)) expect((await askAssistant(name, asJson(input))).isError).toBe(true);
});

test.each(REFUSED)("%s refuses %j with the same sentence on every surface", async (name, input, slug, values = {}) => {
  const described = OPERATIONS.find((one) => one.name === name)!;
  const declared = described.refusals![slug.replaceAll("-", "_")]!;
  const sentence = declared.sentence.replaceAll(/\{(\w+)\}/g, (_, value: string) => values[value]!);
  const response = await overHttp(described, input);
  const problem = { type: `urn:reachlog:problem:${slug}`, detail: sentence };
  expect([response.status, await response.json()]).toMatchObject([STATUS[declared.kind], problem]);
  const command = await runHere(...asWords(described, input), "--json");
  expect([command.code, command.out, command.err]).toEqual([1, "", `${sentence}\n`]);
  if (isReading(described)) expect(await askAssistant(name, asJson(input))).toEqual({ text: sentence, isError: true });
});
