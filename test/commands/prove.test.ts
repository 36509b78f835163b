// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatPublicKey } from "eventstore-lite/proof";
import { KEYS_PER_EVENT_MAX } from "../../events/erasure.ts";
import { audit } from "../../src/commands/audit.ts";
import { fileClock } from "../../src/log/log-time-and-clock-skew.ts";
import { createEventLog, STREAMS } from "../../src/log/event-log.ts";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { startRetention } from "../../src/privacy/delete-erased-and-expired-keys.ts";
import { capture } from "../harness/capture-command.ts";
import { openCommands, timeAt, type CommandHarness } from "../harness/in-process/commands.ts";
import { addedOf, clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { forget, forgetClicks } from "../harness/in-process/operation-commands.ts";
import { toLogContext } from "../harness/in-process/temporary-log.ts";

const IP = "203.0.113.7";

/** Opens a log whose events can be proved, a minute apart. Position 1 adds a recipient, 2 is a click, 3 a message. */
async function openProved() {
  const world = await openCommands();
  await world.append(STREAMS.outreach, [addedOf({ username: "ada" })]);
  await world.append(STREAMS.link("go.example", "x"), [clickOf({ ip: IP })]);
  await world.append(STREAMS.requests, [{ type: "MessageRequested", data: { text: "hello" } }]);
  const key = formatPublicKey((await world.store.checkpoints.loadKey()).publicKey);
  let files = 0;
  return {
    world,
    key,
    /** Writes a proof of the event with `audit prove`. Returns the path of the proof's file. */
    async prove(event: string, ...args: string[]): Promise<string> {
      const file = join(world.directory, `${(files += 1)}.tlog-proof`);
      expect(await world.run(audit, "prove", event, "--out", file, ...args)).toMatchObject({ code: 0, out: "" });
      return file;
    },
    check: (file: string, ...args: string[]) => world.run(audit, "check", file, "--public-key", key, ...args),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

async function headOf(world: CommandHarness, name: string): Promise<string> {
  const file = join(world.directory, name);
  expect(await world.run(audit, "head", "--out", file)).toMatchObject({ code: 0 });
  return file;
}

test("an event is proved by its position or its id, and checked without the log", async () => {
  await using proved = await openProved();
  const { world } = proved;
  const [event] = await Array.fromAsync(world.store.read({ from: 2, to: 2 }));
  for (const name of ["2", event!.id]) {
    const { code, out } = await proved.check(await proved.prove(name));
    expect(code).toBe(0);
    expect(out).toStartWith(
      `proved: exactly these bytes, LinkClicked ${event!.id} of ${timeAt(2)}, stood at position 2 of `,
    );
    expect(out.split("\n")).toHaveLength(2);
  }
  const { out } = await proved.check(await proved.prove("2"), "--json");
  expect(JSON.parse(out)).toMatchObject({ ok: true, position: 2, type: "LinkClicked", head: { position: 3 } });
  expect((await world.run(audit, "prove", "2")).out).toStartWith("c2sp.org/tlog-proof@v1\nextra ");
});

test("the proof contains no personal data; --plain writes the decrypted event to another file", async () => {
  await using proved = await openProved();
  const file = await proved.prove("2", "--plain");
  const [, extra = ""] = /^extra (.+)$/m.exec(readFileSync(file, "utf8")) ?? [];
  expect(Buffer.from(extra, "base64").toString()).not.toContain(IP);
  expect(JSON.parse(readFileSync(`${file}.jsonl`, "utf8"))).toMatchObject({ position: 2, data: { ip: IP } });
});

const ERASURES: readonly (readonly [string, (world: CommandHarness) => Promise<void>])[] = [
  ["forget", async ({ run }) => void (await run(forgetClicks, IP, "--yes"))],
  [
    "retention",
    async ({ store }) => {
      const logClock = fileClock(() => Date.parse(timeAt(3)) + 3 * 86_400_000);
      const log = { ...toLogContext(createEventLog(store, makeId)), keyring: store.keyring, logClock };
      using _retention = await startRetention(log, 1, () => () => {});
      const { signal } = new AbortController();
      for await (const _ of store.subscribe({ types: ["PersonalDataExpired"], from: 1, signal })) break;
    },
  ],
];

test.each(ERASURES)("after %s old and new proofs still check, and the plain text is gone", async (_, erase) => {
  await using proved = await openProved();
  const before = await proved.prove("2");
  await erase(proved.world);
  const after = await proved.prove("2", "--plain");
  for (const file of [before, after]) expect(await proved.check(file)).toMatchObject({ code: 0 });
  const extra = (file: string): string | undefined => /^extra .+$/m.exec(readFileSync(file, "utf8"))?.[0];
  expect(extra(after)).toBe(extra(before));
  expect(readFileSync(`${after}.jsonl`, "utf8")).not.toContain(IP);
});

test("a certificate of erasure contains the ground, the requester and the proof of the event", async () => {
  await using proved = await openProved();
  const file = join(proved.world.directory, "certificate.json");
  const why = ["--ground", "consent_withdrawn", "--requested-by", "recipient"];
  expect(await proved.world.run(forgetClicks, IP, "--yes", ...why, "--certificate", file)).toMatchObject({ code: 0 });
  const { proofs, ...certificate } = JSON.parse(readFileSync(file, "utf8")) as { readonly proofs: readonly string[] };
  const [erasure] = await Array.fromAsync(proved.world.store.read({ types: ["PersonForgotten"] }));
  expect(certificate).toMatchObject({
    ground: "consent_withdrawn",
    requested_by: "recipient",
    keys: 1,
    event: { id: erasure?.id, position: erasure?.position },
  });
  expect(JSON.stringify(certificate)).not.toContain(IP);
  const noted = join(proved.world.directory, "certificate.tlog-proof");
  expect(proofs).toHaveLength(1);
  writeFileSync(noted, proofs[0]!);
  expect(await proved.check(noted)).toMatchObject({ code: 0, out: expect.stringContaining("PersonForgotten") });
});

test("a certificate for an erasure in several events proves each event", async () => {
  await using proved = await openProved();
  const { world } = proved;
  const recipient = { id: "101", username: "ada" };
  const perMessage = KEYS_PER_EVENT_MAX / 4;
  for (let at = 0; at < 5; at++) {
    const attempt = { attempt_id: `a${at}`, run_id: "r", recipient, text: "Hi", variant: "A", day: "2026-11-20" };
    const personal_links = Array.from({ length: perMessage }, (_, link) => ({ code: `c${at}-${link}`, link: "g/x" }));
    await world.append(STREAMS.outreach, [{ type: "DirectMessageAttempted", data: { ...attempt, personal_links } }]);
  }
  const file = join(world.directory, "certificate.json");
  const answered = await world.run(forget, "ada", "--yes", "--json", "--certificate", file);
  const erasures = await Array.fromAsync(world.store.read({ types: ["PersonForgotten"] }));
  expect(erasures).toHaveLength(2);
  const [{ id, position }] = erasures as [(typeof erasures)[0], (typeof erasures)[0]];
  expect(JSON.parse(answered.out)).toMatchObject({ id, position });
  const { proofs, event } = JSON.parse(readFileSync(file, "utf8")) as { proofs: readonly string[]; event: object };
  expect(event).toEqual({ id, position });
  expect(proofs).toHaveLength(2);
  for (const [at, erasure] of erasures.entries()) {
    const noted = join(world.directory, `${at}.tlog-proof`);
    writeFileSync(noted, proofs[at]!);
    expect((await proved.check(noted)).out).toContain(`PersonForgotten ${erasure.id}`);
  }
});

test("nothing is erased if the certificate's file exists or its folder does not", async () => {
  await using proved = await openProved();
  const { world } = proved;
  const file = join(world.directory, "certificate.json");
  writeFileSync(file, "kept");
  const absent = join(world.directory, "absent", "certificate.json");
  for (const [place, fault] of [
    [file, { kind: "conflict", message: `${file} exists already: nothing is overwritten` }],
    [absent, { code: "ENOENT", path: join(world.directory, "absent") }],
  ] as const) {
    const refused = await world.run(forgetClicks, IP, "--yes", "--certificate", place).catch((error: unknown) => error);
    expect(refused).toMatchObject(fault);
  }
  expect(readFileSync(file, "utf8")).toBe("kept");
  expect(await Array.fromAsync(world.store.read({ types: ["PersonForgotten"] }))).toEqual([]);
});

test("if writing the certificate fails after the erasure, the command names the event", async () => {
  await using proved = await openProved();
  const { world } = proved;
  const file = join(world.directory, "certificate.json");
  const ask = async (): Promise<string> => {
    writeFileSync(file, "of another process");
    return "yes";
  };
  const { code, out, err } = await capture(forgetClicks, [IP, "--certificate", file], { env: world.env, ask });
  const [erasure] = await Array.fromAsync(world.store.read({ types: ["PersonForgotten"] }));
  const recorded = `Position ${erasure!.position} records it, event ${erasure!.id}.`;
  expect([code, out]).toEqual([1, `Erased: 1 event can no longer be read, 1 key was deleted. ${recorded}\n`]);
  expect(err).toEndWith(`no certificate was written: ${file} exists already: nothing is overwritten\n`);
  expect(await proved.check(await proved.prove(erasure!.id))).toMatchObject({ code: 0 });
});

test("an altered proof, and one checked with another key, is rejected", async () => {
  await using proved = await openProved();
  const file = await proved.prove("2");
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replace("index 1", "index 2"));
  expect(await proved.check(file)).toMatchObject({
    code: 1,
    out: "not proved: the event does not stand where the proof says in the tree that was signed\n",
  });
  writeFileSync(file, text);
  const other = await proved.world.run(audit, "check", file, "--public-key", Buffer.alloc(32, 1).toString("base64"));
  expect(other).toMatchObject({ code: 1, out: "not proved: the checkpoint is not signed by the log's key\n" });
});

test("wrong tiles are rebuilt for a proof", async () => {
  await using proved = await openProved();
  const { world } = proved;
  const messages = Array.from({ length: 300 }, () => ({ type: "MessageRequested", data: { text: "hello" } }) as const);
  await createEventLog(world.store, () => Bun.randomUUIDv7()).append(STREAMS.requests, messages, { caller: "test" });
  await proved.prove("300");
  const { hash = "" } = (await Array.fromAsync(world.store.read({ from: 256, to: 256 })))[0] ?? {};
  const wrong = Buffer.alloc(32).toString("base64");
  await world.store.snapshots.save("merkle/1/0", { version: 1, position: 256, state: wrong });
  await world.store.snapshots.save("merkle", { version: 1, position: 256, state: hash });
  expect(await proved.check(await proved.prove("300"))).toMatchObject({ code: 0 });
});

test.each(["4", Bun.randomUUIDv7()])("prove refuses %s, which is no event of the log", async (event) => {
  await using proved = await openProved();
  const refusal = proved.world.run(audit, "prove", event).catch((fault: unknown) => fault);
  expect(await refusal).toMatchObject({ kind: "not_found" });
});

test("a newer head is consistent with an older one, in either order", async () => {
  await using proved = await openProved();
  const { world } = proved;
  const older = await headOf(world, "older");
  await world.append(STREAMS.requests, [{ type: "MessageRequested", data: { text: "more" } }]);
  const newer = await headOf(world, "newer");
  const expected = "the newer head holds all events of the older one; the proof has 3 hashes\n";
  expect(await world.run(audit, "consistency", older, newer)).toMatchObject({ code: 0, out: expected });
  expect(await world.run(audit, "consistency", newer, older)).toMatchObject({ code: 0, out: expected });
  const { out } = await world.run(audit, "consistency", older, newer, "--json");
  expect(JSON.parse(out)).toMatchObject({
    ok: true,
    proof: Array.from({ length: 3 }, () => expect.stringMatching(/^.{44}$/)),
  });
});

test("a head of another log is rejected", async () => {
  await using proved = await openProved();
  await using other = await openProved();
  const own = await headOf(proved.world, "own");
  const foreign = await headOf(other.world, "foreign");
  const { code, out } = await proved.world.run(audit, "consistency", own, foreign);
  expect([code, out]).toEqual([1, "the checkpoint is not signed by the log's key\n"]);
});
