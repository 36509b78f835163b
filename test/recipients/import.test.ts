// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { findContact } from "../../projections/contact-identity.ts";
import type { EventLog } from "../../src/log/event-log.ts";
import { importRecipients } from "../../src/recipients/import.ts";
import { parseRecipients } from "../../src/recipients/parse-imported-lists.ts";
import { previewImport } from "../../src/recipients/preview-import.ts";
import { readInWorker } from "../../src/recipients/file/read-in-worker.ts";
import { startProjector, type Projector } from "../../src/projector/projector.ts";
import { RULES } from "../harness/in-process/simulated-outreach-processes.ts";
import {
  LOG_ENGINES,
  METADATA,
  openMemoryLog,
  type LogEngine,
  type MemoryLog,
  toStateContext,
} from "../harness/in-process/temporary-log.ts";

const NOW = Date.parse("2026-11-20T10:00:00.000Z");

const PEOPLE = parseRecipients("username,basis,city\nann,opt_in,Rome\nbea,,\ncid,opt_in,\ndan,none,", "csv", {
  now: NOW,
}).rows;
const NEVER = new AbortController().signal;

let log: MemoryLog;
let projector: Projector;
async function open(engine: LogEngine = "in a file"): Promise<void> {
  log = await openMemoryLog({ engine });
  projector = log.use(await startProjector(log.store));
}
beforeEach(() => open());
afterEach(() => log[Symbol.asyncDispose]());

const depsOf = () => {
  const findLinkKeys = (codes: readonly string[]) => codes.map((code) => `key of ${code}`);
  return {
    ...toStateContext({ ...log, projector }, { sleep: async () => {} }),
    findLinkKeys,
    hashesOf: RULES.hashes,
  };
};

test("an import adds and updates recipients, and counts those without consent", async () => {
  const deps = depsOf();
  const first = await importRecipients(deps, PEOPLE.slice(0, 2), METADATA, { chunkRows: 10, signal: NEVER });
  expect(first).toEqual({ taken: 2, added: 2, withoutConsent: 1, withoutEvidence: 1, revoked: 0, fields: ["city"] });
  const received = {
    recipient: { id: "4", username: "dan" },
    message_id: "m",
    received_at: "2026-03-01T08:00:00.000Z",
  };
  await log.eventLog.append("outreach", [{ type: "DirectMessageReceived", data: received }], METADATA);
  await projector.until((await log.store.head()).position);
  const all = await importRecipients(deps, PEOPLE, { caller: "ops" }, { chunkRows: 1, signal: NEVER });
  expect(all).toEqual({ taken: 4, added: 2, withoutConsent: 1, withoutEvidence: 2, revoked: 0, fields: ["city"] });
  expect(projector.state("contacts").people.size).toBe(4);
  const callers = (await log.events("RecipientAdded")).map(({ meta }) => meta.caller);
  expect(callers.join()).toBe("tests,tests,ops,ops,ops,ops");
});

describe.each(LOG_ENGINES)("a second file, into a log %s", (engine) => {
  beforeEach(async () => {
    if (engine === "in a file") return;
    await log[Symbol.asyncDispose]();
    await open(engine);
  });

  const FIRST =
    "username,name,basis,product,timezone,consent_at,consent_source,tracking\n" +
    "ann,Ann,opt_in,plan A,Europe/Berlin,2026-01-02,form,granted";
  const HELD = {
    name: "Ann",
    timezone: "Europe/Berlin",
    basis: "opt_in",
    consent: { basis: "opt_in", at: "2026-01-02", source: "form" },
    tracking: { status: "granted" },
    fields: { product: "plan A" },
  };

  async function importInTurn(...files: readonly string[]) {
    const options = { chunkRows: 10, signal: NEVER };
    const reports = [];
    for (const file of files)
      reports.push(
        await importRecipients(depsOf(), parseRecipients(file, "csv", { now: NOW }).rows, METADATA, options),
      );
    return { report: reports.at(-1), ann: findContact(projector.state("contacts"), { username: "ann" }) };
  }

  test("keeps data without a column in the file, with its evidence", async () => {
    const { ann, report } = await importInTurn(FIRST, "username,city\nann,London");
    expect(ann).toMatchObject({ ...HELD, fields: { product: "plan A", city: "London" } });
    expect(report).toMatchObject({ added: 0, withoutConsent: 0, revoked: 0, fields: ["city"] });
  });

  test("clears fields that it leaves blank, but not consent", async () => {
    const { ann, report } = await importInTurn(FIRST, "username,name,timezone,product,basis,tracking\nann,,,,,");
    expect(ann).toMatchObject({ basis: "opt_in", consent: HELD.consent, tracking: HELD.tracking, fields: {} });
    expect([ann?.name, ann?.timezone, report?.revoked]).toEqual([undefined, undefined, 0]);
  });

  test("revokes consent by the word none only, and counts that", async () => {
    const { ann, report } = await importInTurn(FIRST, "username,basis\nann,none");
    expect(ann).toMatchObject({ ...HELD, basis: "none", consent: null });
    expect(report).toMatchObject({ withoutConsent: 1, revoked: 1 });
  });

  test("keeps a revocation if a later row of the recipient has blank consent", async () => {
    const twice = "username,basis,consent_source,tracking,city\nann,none,phone,denied,Rome\nann,,,,Bonn";
    const { ann } = await importInTurn(FIRST, twice);
    expect(ann).toMatchObject({
      basis: "none",
      consent: { source: "phone" },
      tracking: { status: "denied" },
      fields: { product: "plan A", city: "Bonn" },
    });
  });

  test.each([
    ["none,phone,spring", "opt_in,form,autumn", "opt_in", { spring: "none", autumn: "opt_in" }],
    ["none,phone,spring", "opt_in,form,", "opt_in", { spring: "none" }],
    ["none,phone,spring", "none,phone,", "none", { spring: "none" }],
    ["none,phone,", "opt_in,form,autumn", "none", { autumn: "opt_in" }],
    ["none,phone,spring", "opt_in,form,spring", "opt_in", { spring: "opt_in" }],
    ["none,phone,Spring", "opt_in,form,spring", "opt_in", { spring: "opt_in" }],
  ] as const)(
    "keeps a withdrawal if a later row gives another consent: %s, then %s",
    async (one, two, basis, named) => {
      const twice = `username,basis,consent_source,consent_for,city\nann,${one},Rome\nann,${two},Bonn`;
      const { rows } = parseRecipients(twice, "csv", { now: NOW });
      await importInTurn(FIRST);
      const preview = () => previewImport(() => projector.state("contacts"), rows, undefined).next().value;
      const previewed = preview();
      const { ann, report } = await importInTurn(twice);
      const bases = Object.entries(ann?.consents_for ?? {}).map(([name, consent]) => [name, consent.basis]);
      expect([ann?.basis, Object.fromEntries(bases)]).toEqual([basis, named]);
      expect(ann).toMatchObject({ fields: { product: "plan A", city: "Bonn" } });
      expect(report).toMatchObject({ taken: 1, added: 0 });
      expect(previewed).toMatchObject({ added: 0, updated: 1, unchanged: 0, revoked: report?.revoked });
      expect(preview()).toMatchObject({ updated: 0, unchanged: 1, revoked: 0 });
    },
  );
});

test("an interrupted import ends between chunks and reports its progress", async () => {
  const stop = new AbortController();
  const onProgress = (taken: number): void => {
    if (taken === 2) stop.abort();
  };
  const deps = depsOf();
  const report = await importRecipients(deps, PEOPLE, METADATA, { chunkRows: 2, signal: stop.signal, onProgress });
  expect(report).toMatchObject({ taken: 2, added: 2 });
  expect(await log.events("RecipientAdded")).toHaveLength(2);
});

test("an import waits for the projections up to the last position of any chunk", async () => {
  const ends = [7, 9, 8];
  const append: EventLog["append"] = async () => {
    const last = ends.shift() ?? 0;
    return { first: last, last, version: 1, repeated: false, ids: [] };
  };
  const waited: number[] = [];
  const until = async (position: number): Promise<void> => void waited.push(position);
  const deps = { ...depsOf(), eventLog: { ...log.eventLog, append }, projector: { ...projector, until } };
  await importRecipients(deps, PEOPLE.slice(0, 3), METADATA, { chunkRows: 1, signal: NEVER });
  expect(waited).toEqual([9]);
});

test("an import yields to the event loop after each chunk", async () => {
  const { last } = await log.eventLog.append("outreach", [{ type: "RunFinished", data: runFinished }], METADATA);
  const appended = Promise.resolve({ first: last, last, version: 1, repeated: false, ids: [] });
  const eventLog: EventLog = { ...log.eventLog, append: () => appended };
  let turns = 0;
  const turn = (): void => {
    turns++;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  await importRecipients({ ...depsOf(), eventLog }, PEOPLE, METADATA, { chunkRows: 1, signal: NEVER });
  clearImmediate(next);
  expect(turns).toBeGreaterThanOrEqual(PEOPLE.length - 1);
});

const runFinished = { run_id: "r", reason: "completed", sent: 0, skipped: 0, failed: 0, in_doubt: 0 } as const;

test("a worker reads a file like the main thread", async () => {
  const rows = Array.from({ length: 2_500 }, (_, at) => `p_${at},opt_in,"a ""b"", ${at}"`).join("\n");
  const text = `username,basis,note\n${rows}\nno handle,,\nP_7,opt_in,again\n`;
  const { rows: read, refused, duplicates, notes } = parseRecipients(text, "csv", { now: NOW });
  expect(await readInWorker({ file: new TextEncoder().encode(text), format: "csv", now: NOW }, NEVER)).toEqual({
    rows: read.map(({ line, recipient }) => ({ line, recipient: { ...recipient, fields: { ...recipient.fields } } })),
    refused: { count: 1, first: refused },
    duplicates: { count: 1, first: duplicates },
    notes,
  });
});

test("a worker reports an unreadable file with the reason", async () => {
  const file = new TextEncoder().encode("name\nAnn");
  expect(readInWorker({ file, format: "csv", now: NOW }, NEVER)).rejects.toMatchObject({
    kind: "invalid",
    message: expect.stringContaining("no column is named username"),
  });
  expect(readInWorker({ file, format: "json", now: NOW }, NEVER)).rejects.toMatchObject({
    message: "the file is not valid JSON",
  });
});

describe("a file that takes long to read in a worker", () => {
  const LONG = new TextEncoder().encode(`username,note\n${'"a","b"\n'.repeat(1_000_000)}`);

  const faultOf = (reading: Promise<unknown>): Promise<unknown> => reading.catch((fault: unknown) => fault);
  const hungUp = new Error("hung up");

  test("is abandoned when its caller leaves", async () => {
    const gone = new AbortController();
    const reading = readInWorker({ file: LONG, format: "csv", now: NOW }, gone.signal);
    gone.abort(hungUp);
    expect(await faultOf(reading)).toBe(hungUp);
  });

  test("is not begun if its caller has left before", async () => {
    expect(await faultOf(readInWorker({ file: LONG, format: "csv", now: NOW }, AbortSignal.abort(hungUp)))).toBe(
      hungUp,
    );
  });

  test("is refused after the time limit", async () => {
    expect(await faultOf(readInWorker({ file: LONG, format: "csv", now: NOW }, NEVER, 1))).toMatchObject({
      kind: "invalid",
      message: "reading the file takes longer than 0.001 seconds: split the file",
    });
  });
});
