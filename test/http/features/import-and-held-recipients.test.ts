// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { valid } from "../../fuzz/bodies.ts";
import { parseDocument, type Schema } from "../../fuzz/parse-openapi-operations.ts";
import { dropReplacedUpTo } from "../../../projections/contact-changes-to-rewind.ts";
import { findContact } from "../../../projections/contact-identity.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { foldTo } from "../../../src/projector/fold-to-moment.ts";
import { toRecipientJson } from "../../../src/recipients/recipient-json.ts";
import { findNamed } from "../../../src/recipients/resolve-recipient.ts";
import { parseRecipients } from "../../../src/recipients/parse-imported-lists.ts";
import { ask, openApp, post, problemIn, TOKEN, type AppHarness } from "../../harness/in-process/app.ts";
import { addedOf } from "../../harness/in-process/make-recipient-and-click-events.ts";

interface Document {
  readonly paths: {
    readonly "/social/recipients": {
      readonly post: {
        readonly requestBody: {
          readonly content: Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>;
        };
      };
    };
  };
}

const ANN = { id: "1786543210987654321", username: "ann_builds" };
const ATTEMPT = { attempt_id: "a1", run_id: "r1", recipient: ANN };
const FAILED: readonly NewEvent[] = [
  { type: "DirectMessageAttempted", data: { ...ATTEMPT, text: "Hi Ann", variant: "A", day: "2026-03-01" } },
  {
    type: "DirectMessageFailed",
    data: { ...ATTEMPT, reason: "recipient_closed", detail: "", frees_quota: true, retry: false },
  },
];

let world: AppHarness;
beforeEach(async () => {
  world = await openApp();
});
afterEach(() => world[Symbol.asyncDispose]());

const send = (path: string, body: unknown, type?: string): Promise<Response> =>
  post(world.app, path, body, {
    token: TOKEN,
    ...(type === undefined ? {} : { headers: { "content-type": type } }),
  });
const contact = (username: string) => findContact(world.projector.state("contacts"), { username });

describe("POST /social/recipients", () => {
  test.each([
    ["text/csv", "csv"],
    ["application/json", "json"],
    ["application/jsonl", "jsonl"],
    ["application/x-ndjson", "jsonl"],
  ] as const)("a body that fits the documented schema of %s is accepted", async (type, format) => {
    const document = parseDocument(await (await ask(world.app, "/openapi.json")).text()) as Document;
    const { schema, example } = document.paths["/social/recipients"].post.requestBody.content[type] ?? {};
    if (schema === undefined) throw new Error(`no schema of ${type}`);
    const bodies = valid(schema).map((body) => (typeof body === "string" ? body : JSON.stringify(body)));
    // Calls the parser in this thread. The service uses a worker thread for each body, which would take a minute here.
    const property = fc.property(
      bodies,
      (body) => void parseRecipients(new TextEncoder().encode(body), format, { now: 0 }),
    );
    fc.assert(property, { numRuns: 200 });
    const given = example === undefined ? schema.examples?.[0] : JSON.stringify(example);
    const answer = await send("/social/recipients", given, type);
    expect([answer.status, await answer.json()]).toMatchObject([200, { added: 1, refused: 0 }]);
  });

  const PEOPLE = "username,Product,name,basis\nann_builds,tea,Ann,opt_in\nbea,,Bea,\nc d,,Cid,opt_in\nBEA,cups,Bea,";

  test("imports a CSV, and reports accepted and refused rows", async () => {
    const answer = await send("/social/recipients", PEOPLE, "text/csv; charset=utf-8");
    expect([answer.status, await answer.json()]).toEqual([
      200,
      {
        added: 2,
        updated: 0,
        without_consent: 1,
        without_evidence: 1,
        revoked: 0,
        template_fields: ["product"],
        refused: 1,
        refused_rows: [{ line: 4, value: "c d", reason: expect.stringContaining("username is neither a handle") }],
        duplicates: 1,
        duplicate_rows: [{ line: 5, of: 3 }],
        noted_cells: 0,
        notes: [],
      },
    ]);
    expect(contact("bea")).toMatchObject({ listed: true, basis: "none", fields: { product: "cups" } });
    const [event] = await world.events("RecipientAdded");
    expect(event?.meta.caller).toBe("tests");
  });

  test.each([
    ["application/json", JSON.stringify([{ username: "ann_builds" }, { id: "1786543210987654321" }])],
    ["application/json", JSON.stringify({ recipients: [{ username: "ann_builds" }, { id: "1786543210987654321" }] })],
    ["application/x-ndjson", '{"username":"ann_builds"}\n{"id":"1786543210987654321"}\n'],
    ["application/jsonl", '{"username":"ann_builds"}\n{"id":"1786543210987654321"}\n'],
  ])("imports %s: %s", async (type, body) => {
    const answer = await send("/social/recipients", body, type);
    expect([answer.status, await answer.json()]).toMatchObject([200, { added: 2, without_consent: 2, refused: 0 }]);
  });

  test("notes the cells that were read differently", async () => {
    const answer = await send("/social/recipients", "id,username,name\n1001,null,Ann\n1002,null,'@Bea", "text/csv");
    expect(await answer.json()).toMatchObject({
      added: 2,
      noted_cells: 3,
      notes: [
        { note: "read_as_blank", column: "username", value: "null", line: 2, count: 2 },
        { note: "guard_removed", column: "name", value: "'@Bea", line: 3, count: 1 },
      ],
    });
  });

  test("reads columns as the query maps them, and a preview with the same query writes nothing", async () => {
    const list = "E-Mail,Handle,Opted in\na@x.example,ann,yes";
    const query = `?${new URLSearchParams([
      ["map", "E-Mail="],
      ["map", "Opted in=basis"],
    ])}`;
    const preview = await (await send(`/social/recipients/preview${query}`, list, "text/csv")).json();
    expect(preview).toMatchObject({ rows: 1, added: 1, unchanged: 0, refused: 0, finished: [{ username: "ann" }] });
    expect(contact("ann")).toBeUndefined();
    expect(await (await send(`/social/recipients${query}`, list, "text/csv")).json()).toMatchObject({ added: 1 });
    expect(contact("ann")).toMatchObject({ basis: "opt_in", fields: {} });
    expect(await (await send(`/social/recipients/preview${query}`, list, "text/csv")).json()).toMatchObject({
      unchanged: 1,
    });
    expect(await problemIn(await send("/social/recipients?map=x", list, "text/csv"))).toBe("422 unreadable-file");
  });

  test("takes a basis and a source for all rows from the query, and refuses an unknown basis", async () => {
    const list = "username,consent_at\nann,2025-03-02\nbea,";
    const query = `?${new URLSearchParams({ basis: "opted in", consent_source: "Newsletter form" })}`;
    expect(await (await send("/social/recipients/preview", list, "text/csv")).json()).toMatchObject({
      added: 1,
      refused: 1,
      without_basis: 1,
      lacking_evidence: [],
    });
    expect(await (await send(`/social/recipients/preview${query}`, list, "text/csv")).json()).toMatchObject({
      added: 2,
      without_basis: 0,
      without_evidence: 1,
      lacking_evidence: [{ missing: ["consent_at"], count: 1, first: [{ line: 3, username: "bea" }] }],
    });
    expect(await (await send(`/social/recipients${query}`, list, "text/csv")).json()).toMatchObject({ added: 2 });
    const consent = { at: "2025-03-02", source: "Newsletter form" };
    expect(contact("ann")).toMatchObject({ basis: "opt_in", consent });
    expect(await problemIn(await send("/social/recipients?basis=yes", list, "text/csv"))).toBe("422 unreadable-file");
  });

  test("reads dates in the order of the query, and refuses an unknown order", async () => {
    const list = "username,basis,consent_at\nann,opt_in,3/2/2025";
    expect(await (await send("/social/recipients?dates=mdy", list, "text/csv")).json()).toMatchObject({ added: 1 });
    expect(contact("ann")?.consent).toEqual({ basis: "opt_in", at: "2025-03-02" });
    expect((await send("/social/recipients?dates=ymd", list, "text/csv")).status).toBe(422);
    const reason = expect.stringContaining("3/2/2025 is ambiguous, 2025-02-03 or 2025-03-02");
    const refused = [{ line: 2, value: "3/2/2025", reason }];
    expect(await (await send("/social/recipients", list, "text/csv")).json()).toMatchObject({ refused_rows: refused });
  });

  test("updates recipients when a list is sent again", async () => {
    await send("/social/recipients", PEOPLE, "text/csv");
    const again = await send("/social/recipients", PEOPLE, "text/csv");
    expect(await again.json()).toMatchObject({ added: 0, updated: 2 });
  });

  test.each([
    ["an empty body", "", "the file is empty"],
    ["a table without usernames", "name\nAnn", "no column is named username"],
    ["a workbook", "PK\u0003\u0004", "workbook"],
  ])("refuses %s as a whole", async (_what, body, why) => {
    const answer = await send("/social/recipients", body, "text/csv");
    const { detail } = (await answer.clone().json()) as { detail: string };
    expect([await problemIn(answer), detail]).toEqual(["422 unreadable-file", expect.stringContaining(why)]);
    expect((await world.store.head()).position).toBe(0);
  });

  test.each(["text/plain", "text/csv; charset=windows-1252", "application/vnd.ms-excel", ""])(
    "refuses the type %j",
    async (type) => {
      expect(await problemIn(await send("/social/recipients", PEOPLE, type))).toBe("415 unsupported-media-type");
    },
  );

  test("accepts larger bodies than other endpoints, up to 10 MiB", async () => {
    const many = Array.from({ length: 5_000 }, (_, at) => `person_${at},opt_in,${"x".repeat(10)}`).join("\n");
    const answer = await send("/social/recipients", `username,basis,note\n${many}`, "text/csv");
    expect(await answer.json()).toMatchObject({ added: 5_000 });
    let pulled = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled += 1;
        controller.enqueue(new Uint8Array(1024 * 1024).fill(10));
      },
    });
    expect(await problemIn(await send("/social/recipients", endless, "text/csv"))).toBe("413 body-too-large");
    expect(pulled).toBeLessThan(15);
  });

  test("lists at most 1,000 of many refused rows", async () => {
    const bad = "! !\n".repeat(3_000);
    const answer = await send("/social/recipients", `username\n${bad}`, "text/csv");
    const { refused, refused_rows } = (await answer.json()) as { refused: number; refused_rows: unknown[] };
    expect([refused, refused_rows.length]).toEqual([3_000, 1_000]);
  });
});

describe("an import in progress", () => {
  const LONG = `username,note\n${'"a","b"\n'.repeat(500_000)}`;

  test("causes another import to be refused until it is complete", async () => {
    const taken = Promise.withResolvers<void>();
    const first = world.deps.load.whileTaking(() => taken.promise);
    const second = await send("/social/recipients", "username\nbea", "text/csv");
    expect([await problemIn(second), second.headers.get("retry-after")]).toEqual(["503 overloaded", "5"]);
    expect(contact("bea")).toBeUndefined();
    taken.resolve();
    await first;
    expect((await send("/social/recipients", "username\nbea", "text/csv")).status).toBe(200);
  });

  test("is abandoned when its client disconnects, so that another can start", async () => {
    const client = new AbortController();
    const headers = { host: "localhost", "content-type": "text/csv", authorization: `Bearer ${TOKEN}` };
    const init = { method: "POST", body: LONG, headers, signal: client.signal };
    const answer = world.app.handle(new Request("http://localhost/social/recipients", init));
    while (!world.deps.load.isTaking) await Bun.sleep(1);
    client.abort();
    expect(await problemIn(await answer)).toBe("503 log-unavailable");
    expect((await world.store.head()).position).toBe(0);
    expect((await send("/social/recipients", "username\nbea", "text/csv")).status).toBe(200);
  });

  test("is abandoned when the service stops, before anything is recorded", async () => {
    const app = world.restart({ stopping: AbortSignal.abort() });
    const headers = { "content-type": "text/csv" };
    const answer = await post(app, "/social/recipients", "username\nbea\n", { token: TOKEN, headers });
    expect([await problemIn(answer), answer.headers.get("retry-after")]).toEqual(["503 log-unavailable", "5"]);
    expect((await world.store.head()).position).toBe(0);
  });
});

test("GET /social/recipients lists each past moment as a fold of the log does, page by page", async () => {
  const added = (username: string): NewEvent => addedOf({ username });
  await world.append("outreach", added("bob"), added("ann"), ...FAILED, added("cy"));
  const renamed = { ...ANN, username: "ann_now" };
  const hold = { recipient: renamed, message_id: "m1", received_at: "2026-03-02T09:00:00.000Z" };
  await world.append("outreach", { type: "RecipientHeld", data: hold });
  // The last of these events shows that the id 77 has the handle `cy`. So the recipient's entry by handle merges with
  // the one by id.
  await world.append("outreach", added("ann_builds"), addedOf({ id: "77" }), addedOf({ id: "77", username: "cy" }));
  const { position } = await world.store.head();
  const { projector } = world;
  const listed = async (query: string) =>
    (await ask(world.app, `/social/recipients?${query}`, { token: TOKEN })).json();
  for (let at = 0; at <= position; at++) {
    const { states } = await foldTo(world.store, ["contacts"], { to: at });
    const folded = [...states.contacts.people.values()]
      .map(toRecipientJson)
      .toSorted((a, b) => a.position - b.position);
    const { recipients, count } = (await listed(`as_of=${at}`)) as { recipients: unknown[]; count: number };
    expect([at, recipients, count]).toEqual([at, folded, folded.length]);
    const held = (await listed(`as_of=${at}&held=true`)) as { count: number };
    expect(held.count).toBe(folded.filter((one) => one.held).length);
    const pages: unknown[] = [];
    for (let next: number | null | undefined; next !== null;) {
      const after = next === undefined ? "" : `&after=${next}`;
      const page = (await listed(`as_of=${at}&limit=1${after}`)) as { recipients: unknown[]; next: number | null };
      pages.push(...page.recipients);
      next = page.next;
    }
    expect(pages).toEqual(folded);
    for (const name of [ANN.id, "77", "ann_builds", "bob"]) {
      const shown = await ask(world.app, `/social/recipients/show?recipient=${name}&as_of=${at}`, { token: TOKEN });
      const contact = findNamed(states.contacts, name);
      const answer = contact === undefined ? 404 : toRecipientJson(contact);
      expect([name, shown.status === 200 ? ((await shown.json()) as { recipient: unknown }).recipient : 404]).toEqual([
        name,
        answer,
      ]);
    }
  }
  // Drops the values from which the service would compute this moment, so that it has to fold the log.
  dropReplacedUpTo(projector.state("contacts"), position);
  const { states } = await foldTo(world.store, ["contacts"], { to: 3 });
  expect(await listed("as_of=3")).toMatchObject({
    recipients: [...states.contacts.people.values()].map(toRecipientJson),
  });
});

describe("POST /social/recipients/suppress", () => {
  test.each([ANN.id, "ann_builds", "@ANN_builds"])(
    "suppresses %s, and records a repeat only once",
    async (recipient) => {
      await world.append("outreach", ...FAILED);
      for (const _again of [1, 2]) {
        const answer = await send("/social/recipients/suppress", { recipient });
        expect([answer.status, await answer.json()]).toEqual([200, { known: true }]);
      }
      expect(contact("ann_builds")?.suppressed).toBe(true);
      expect(await world.events("RecipientSuppressed")).toMatchObject([{ meta: { caller: "tests" } }]);
    },
  );

  test("suppresses a recipient who is added later under that name", async () => {
    expect(await (await send("/social/recipients/suppress", { recipient: "nan" })).json()).toEqual({ known: false });
    await send("/social/recipients", "username,basis\nnan,opt_in", "text/csv");
    expect(contact("nan")?.suppressed).toBe(true);
  });
});

describe("POST /social/recipients/consent", () => {
  const consent = (body: object) => send("/social/recipients/consent", body);
  const OPT_IN = { basis: "opt_in", consent_at: "2025-03-02", consent_source: "form", consent_text: "Yes" };

  test.each([ANN.id, "ann_builds", "@ANN_builds"])(
    "records the consent of %s, and a repeat only once",
    async (recipient) => {
      await world.append("outreach", ...FAILED);
      for (const _again of [1, 2]) {
        const answer = await consent({
          recipient,
          ...OPT_IN,
          tracking: "granted",
          tracking_at: "2025-03-02T10:00+01:00",
        });
        expect([answer.status, await answer.json()]).toEqual([
          200,
          { known: true, basis: "opt_in", tracking: "granted" },
        ]);
      }
      expect(contact("ann_builds")).toMatchObject({
        consent: { basis: "opt_in", at: "2025-03-02", source: "form", text: "Yes" },
        tracking: { status: "granted", at: "2025-03-02T09:00:00.000Z" },
      });
      expect(await world.events("ConsentRecorded")).toMatchObject([{ meta: { caller: "tests" } }]);
    },
  );

  test("answers with the basis for the campaign that a withdrawal names, also of a recipient who wrote first", async () => {
    const received = { recipient: ANN, message_id: "m", received_at: "2025-03-01T10:00:00.000Z" };
    await world.append("outreach", { type: "DirectMessageReceived", data: received });
    const answer = await consent({ recipient: ANN.id, basis: "none", consent_for: "spring" });
    expect(await answer.json()).toEqual({ known: true, basis: "none", tracking: "unknown" });
    expect(contact("ann_builds")).toMatchObject({ basis: "dm_first", consents_for: { spring: { basis: "none" } } });
    const other = await consent({ recipient: ANN.id, basis: "none" });
    expect(await other.json()).toMatchObject({ basis: "dm_first" });
  });

  test("applies to a recipient who is added later under that name", async () => {
    const answer = await consent({ recipient: "nora", tracking: "denied" });
    expect(await answer.json()).toEqual({ known: false, basis: "none", tracking: "denied" });
    await send("/social/recipients", "username,basis\nnora,opt_in", "text/csv");
    expect(contact("nora")).toMatchObject({ basis: "opt_in", tracking: { status: "denied" } });
  });

  test("keeps and reports the basis of a recipient who wrote first", async () => {
    const received = { recipient: ANN, message_id: "m", received_at: "2025-03-01T10:00:00.000Z" };
    await world.append("outreach", { type: "DirectMessageReceived", data: received });
    const answer = await consent({ recipient: ANN.id, basis: "none", tracking: "denied" });
    expect(await answer.json()).toEqual({ known: true, basis: "dm_first", tracking: "denied" });
  });

  test("erases the clicks on personal links, and nothing else, when tracking is denied", async () => {
    const attempt = { ...ATTEMPT, text: "Hi", variant: "A", day: "2026-03-01" };
    const personal_links = [{ code: "own-link", link: "go.example/shared" }];
    await consent({ recipient: ANN.id, ...OPT_IN, tracking: "granted" });
    await world.append(
      "outreach",
      { type: "DirectMessageAttempted", data: { ...attempt, personal_links } },
      { type: "PersonalLinkClicked", data: { code: "own-link" } },
    );
    await consent({ recipient: ANN.id, tracking: "denied" });
    expect(await world.events("PersonForgotten")).toMatchObject([
      { data: { hashes: [], keys: [expect.stringMatching(/^p[0-9a-f]{32}$/)], scope: "tracking" } },
    ]);
    expect(await world.events("PersonalLinkClicked")).toMatchObject([{ data: { code: "erased" } }]);
    expect(contact("ann_builds")).toMatchObject({ suppressed: false, basis: "opt_in", tracking: { status: "denied" } });
  });

  test.each([
    [{}, ""],
    [{ basis: "maybe" }, "/basis"],
    [{ tracking: "yes" }, "/tracking"],
    [{ consent_at: "2025-03-02" }, "/consent_at"],
    [{ basis: "opt_in", consent_at: "2125-03-02" }, "/consent_at"],
    [{ basis: "opt_in", consent_source: "ftp://shop.example" }, "/consent_source"],
    [{ tracking: "granted", tracking_text: "x".repeat(1_001) }, "/tracking_text"],
    [{ tracking: "granted", note: "x" }, "/note"],
  ])("refuses %j, names the path %j and records nothing", async (body, path) => {
    const answer = await consent({ recipient: ANN.id, ...body });
    expect([answer.status, await answer.json()]).toMatchObject([422, { errors: [{ path }] }]);
    expect((await world.store.head()).position).toBe(0);
  });
});

describe("POST /social/recipients/retry", () => {
  const retry = (recipient: string) => send("/social/recipients/retry", { recipient });

  test("allows one more message after a failure", async () => {
    await world.append("outreach", ...FAILED);
    const answer = await retry("@ann_builds");
    expect([answer.status, await answer.json()]).toEqual([200, { status: "open" }]);
    expect(contact("ann_builds")).toMatchObject({ status: "open", again: true });
    expect(await problemIn(await retry("@ann_builds"))).toBe("409 nothing-to-retry");
  });

  test("is for the campaign that the caller names", async () => {
    const inSpring = FAILED.map(({ type, data }) => ({ type, data: { ...data, attempt_id: "b", campaign: "spring" } }));
    await world.append("outreach", ...FAILED, ...(inSpring as NewEvent[]));
    const inDefault = { recipient: "ann_builds", campaign: "default" };
    expect((await send("/social/recipients/retry", inDefault)).status).toBe(200);
    expect(contact("ann_builds")).toMatchObject({ status: "failed", campaigns: { default: { again: true } } });
    expect(await problemIn(await send("/social/recipients/retry", inDefault))).toBe("409 nothing-to-retry");
    expect((await send("/social/recipients/retry", { recipient: ANN.id, campaign: "spring" })).status).toBe(200);
    expect(contact("ann_builds")).toMatchObject({ status: "open", again: true });
  });

  test("is refused for an unknown and for a suppressed recipient", async () => {
    expect(await problemIn(await retry("stranger"))).toBe("404 unknown-recipient");
    await world.append("outreach", ...FAILED);
    await send("/social/recipients/suppress", { recipient: ANN.id });
    const head = await world.store.head();
    expect(await problemIn(await retry(ANN.id))).toBe("409 suppressed");
    expect(await world.store.head()).toEqual(head);
  });
});

describe("a held reply", () => {
  const release = (recipient: string) => send("/social/recipients/release", { recipient });
  const held = async () => {
    await world.projector.until((await world.store.head()).position);
    return (await ask(world.app, "/social/recipients/held", { token: TOKEN })).json();
  };
  const received_at = "2026-03-01T08:00:00.000Z";
  const hold = { type: "RecipientHeld", data: { recipient: ANN, message_id: "m", received_at } } as const;

  test("is listed until an operator releases or suppresses its sender", async () => {
    expect(await held()).toEqual({ count: 0, held: [] });
    await world.append("outreach", hold);
    expect(await held()).toEqual({ count: 1, held: [{ ...ANN, held_at: received_at }] });
    const answer = await release("@ann_builds");
    expect([answer.status, await answer.json()]).toEqual([200, { held: false }]);
    expect(await held()).toEqual({ count: 0, held: [] });
    const head = await world.store.head();
    expect((await release(ANN.id)).status).toBe(200);
    expect(await world.store.head()).toEqual(head);
    await world.append("outreach", hold);
    await send("/social/recipients/suppress", { recipient: ANN.id });
    expect(await held()).toEqual({ count: 0, held: [] });
    expect(await problemIn(await release(ANN.id))).toBe("409 suppressed");
    expect(await problemIn(await release("stranger"))).toBe("404 unknown-recipient");
  });
});

describe("POST /social/recipients/forget", () => {
  const forget = (recipient: string) => send("/social/recipients/forget", { recipient });

  test("erases the recipient, and no other one, in log and projections", async () => {
    await send("/social/recipients", "username,name\nann_builds,Ann Bell\nbea,Bea Cole", "text/csv");
    await world.append("outreach", ...FAILED);
    const answer = await forget("@ann_builds");
    expect([answer.status, await answer.json()]).toEqual([
      200,
      { events: 3, keys: expect.any(Number), id: expect.any(String), position: expect.any(Number) },
    ]);
    expect([...world.projector.state("contacts").people.values()]).toMatchObject([{ username: "bea" }]);
    const log = JSON.stringify(await Array.fromAsync(world.store.read()));
    expect(log).not.toMatch(/ann_builds|Ann Bell|Hi Ann/);
    expect(log).toContain("Bea Cole");
    const [event] = await world.events("PersonForgotten");
    expect(event?.meta.caller).toBe("tests");
    expect(await problemIn(await forget("@ann_builds"))).toBe("404 unknown-recipient");
  });

  test("hides the recipient from a subscriber that is behind", async () => {
    const stop = new AbortController();
    const follower = world.store.subscribe({ from: 1, signal: stop.signal })[Symbol.asyncIterator]();
    await send("/social/recipients", "username\nbea", "text/csv");
    await follower.next();
    await send("/social/recipients", "username,name\nann_builds,Ann Bell", "text/csv");
    await forget("ann_builds");
    const seen = [await follower.next(), await follower.next()].map(({ value }) => JSON.stringify(value));
    stop.abort();
    expect(seen[0]).toContain("RecipientAdded");
    expect(seen[1]).toContain("PersonForgotten");
    expect(seen.join()).not.toContain("Ann Bell");
  });

  test("keeps the recipient out of the contacts after another import", async () => {
    await world.append("outreach", ...FAILED);
    await forget(ANN.id);
    await send("/social/recipients", `id,username,name\n${ANN.id},ann_builds,Ann Bell`, "text/csv");
    expect(world.projector.state("contacts").people.size).toBe(0);
    expect(JSON.stringify(await Array.fromAsync(world.store.read()))).not.toContain("Ann Bell");
  });

  test("logs nothing, and names no recipient in its refusal", async () => {
    const answer = await forget("ann_builds");
    expect(JSON.stringify(await answer.json())).not.toContain("ann_builds");
    expect(world.logged).toEqual([]);
  });

  test("is abandoned when the service stops, before anything is erased", async () => {
    await send("/social/recipients", "username,name\nann_builds,Ann Bell", "text/csv");
    const head = await world.store.head();
    const stopping = AbortSignal.abort();
    const answer = await post(
      world.restart({ stopping }),
      "/social/recipients/forget",
      { recipient: "ann_builds" },
      { token: TOKEN },
    );
    expect([await problemIn(answer), answer.headers.get("retry-after")]).toEqual(["503 log-unavailable", "5"]);
    expect(await world.store.head()).toEqual(head);
  });
});

describe("POST /api/tracking/forget", () => {
  const click = (ip: string) => ({
    event: "click",
    domain: "go.example",
    short_code: "x",
    original_url: `https://shop.example/?from=${ip}`,
    ip,
    user_agent: "Firefox",
  });

  test("erases the clicks of the address and of no other", async () => {
    for (const ip of ["203.0.113.7", "203.0.113.8", "203.0.113.7"]) await send("/api/tracking/event", click(ip));
    const answer = await send("/api/tracking/forget", { ip: "203.0.113.7" });
    expect([answer.status, await answer.json()]).toMatchObject([200, { events: 2, keys: 1 }]);
    const log = JSON.stringify(await Array.fromAsync(world.store.read()));
    expect(log).not.toContain("203.0.113.7");
    expect(log).toContain("203.0.113.8");
    expect(await problemIn(await send("/api/tracking/forget", { ip: "203.0.113.7" }))).toBe("404 unknown-address");
  });

  test("records the ground and the requester", async () => {
    await send("/api/tracking/event", click("203.0.113.7"));
    const reason = { ground: "objection", requested_by: "authority" };
    const answer = await send("/api/tracking/forget", { ip: "203.0.113.7", ...reason });
    const { id, position } = (await answer.json()) as { id: string; position: number };
    const [forgotten] = await world.events("PersonForgotten");
    expect(forgotten).toMatchObject({ id, position, data: reason });
    const wrong = { ip: "203.0.113.7", requested_by: "Ada Lovelace" };
    expect(await problemIn(await send("/api/tracking/forget", wrong))).toBe("422 invalid-request");
  });

  test("refuses an input that is no IP address", async () => {
    expect(await problemIn(await send("/api/tracking/forget", { ip: "@ann" }))).toBe("422 invalid-request");
  });
});

test.each(["", " ", "no handle", "a".repeat(16), "@", "12345678901234567890", "Ä"])(
  "the recipient %j is refused as invalid",
  async (recipient) => {
    for (const action of ["suppress", "retry", "forget", "consent"]) {
      const body = { recipient, ...(action === "consent" ? { tracking: "denied" } : {}) };
      expect(await problemIn(await send(`/social/recipients/${action}`, body))).toBe("422 invalid-request");
    }
  },
);

test("each endpoint requires a token before it reads the body", async () => {
  for (const path of [
    "/social/recipients",
    "/social/recipients/consent",
    "/social/recipients/forget",
    "/api/tracking/forget",
  ]) {
    expect(await problemIn(await ask(world.app, path, { method: "POST", body: "x" }))).toBe("401 unauthorized");
  }
});
