// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatPublicKey, signCheckpoint } from "eventstore-lite/proof";
import { audit } from "../../src/commands/audit.ts";
import { runCommand } from "../../src/commands/shared/command.ts";
import { doctor } from "../../src/commands/doctor.ts";
import { witness } from "../../src/commands/witness.ts";
import { formatOrigin } from "../../src/log/sign-and-compare-checkpoints.ts";
import { STREAMS } from "../../src/log/event-log.ts";
import type { ServiceError } from "../../src/platform/service-error.ts";
import { openCommands, type CommandHarness } from "../harness/in-process/commands.ts";

/** Runs `witness serve` until the result is disposed. The result has the settings that the command prints. */
async function serveWitness(folder: string, key: string, ...more: readonly string[]) {
  const stopping = new AbortController();
  const settings: Record<string, string> = {};
  const printed = Promise.withResolvers<void>();
  const out = (text: string): void => {
    const [, name, value] = /^(WITNESS_\w+)=(.+)\n$/.exec(text) ?? [];
    if (name !== undefined && value !== undefined) settings[name] = value;
    if (Object.keys(settings).length === 2) printed.resolve();
  };
  const terminal = { env: {}, out, err: out, interactive: false, signal: stopping.signal };
  const args = ["serve", "--data", folder, "--log-key", key, "--name", "witness.example", "--port", "0", ...more];
  const ended = runCommand(witness, args, terminal);
  await Promise.race([printed.promise, ended]);
  return {
    settings,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      expect(await ended).toBe(0);
    },
  };
}

async function openWitnessed(world: CommandHarness, folder = join(world.directory, "witness")) {
  await world.append(STREAMS.requests, [{ type: "MessageRequested", data: { text: "hello" } }]);
  return serveWitness(folder, formatPublicKey((await world.store.checkpoints.loadKey()).publicKey));
}

const findingOf = (out: string): string | undefined => /^.+ witness: .+$/m.exec(out)?.[0];

test("doctor has the head cosigned, and reports it", async () => {
  await using world = await openCommands();
  await using served = await openWitnessed(world);
  Object.assign(world.env, served.settings);
  const { out } = await world.run(doctor, "--online");
  expect(findingOf(out)).toBe("ok      witness: witness.example cosigned the head of 1 events");
  const head = await world.run(audit, "head");
  expect(head.out).toContain("/tree\n1\n");
});

test.each([
  [9, "cosigned 9 events of this log, which ends at 1: it was rolled back"],
  [1, "knows another history of this log (409): a split view"],
])(
  "doctor reports that the witness knows another head of %d events, also after a restart",
  async (position, sentence) => {
    await using world = await openCommands();
    const folder = join(world.directory, "witness");
    {
      await using served = await openWitnessed(world, folder);
      const key = await world.store.checkpoints.loadKey();
      const hash = "11".repeat(32);
      const other = { origin: formatOrigin(world.store), position, hash, root: hash, time: undefined };
      const body = `old 0\n\n${signCheckpoint(other, key)}`;
      const { status } = await fetch(`${served.settings["WITNESS_URL"]}/add-checkpoint`, { method: "POST", body });
      expect(status).toBe(200);
    }
    await using served = await serveWitness(
      folder,
      formatPublicKey((await world.store.checkpoints.loadKey()).publicKey),
    );
    Object.assign(world.env, served.settings);
    const { code, out } = await world.run(doctor, "--online");
    expect([code, findingOf(out)]).toEqual([1, expect.stringContaining(sentence)]);
    expect(findingOf(out)).toStartWith("WRONG   witness: the witness witness.example");
  },
);

test("a witness that lost its memory but not its key needs --accept-lost-memory to serve", async () => {
  await using world = await openCommands();
  const folder = join(world.directory, "witness");
  const key = formatPublicKey((await world.store.checkpoints.loadKey()).publicKey);
  const submit = async (served: Awaited<ReturnType<typeof serveWitness>>, position: number) => {
    const hash = "11".repeat(32);
    const head = { origin: formatOrigin(world.store), position, hash, root: hash, time: undefined };
    const note = signCheckpoint(head, await world.store.checkpoints.loadKey());
    const body = `old 0\n\n${note}`;
    return (await fetch(`${served.settings["WITNESS_URL"]}/add-checkpoint`, { method: "POST", body })).status;
  };
  {
    await using served = await serveWitness(folder, key);
    expect(await submit(served, 9)).toBe(200);
  }
  {
    await using served = await serveWitness(folder, key);
    expect(await submit(served, 5)).toBe(409);
  }
  const memory = join(folder, "witness.sqlite");
  for (const lose of [() => writeFileSync(memory, ""), () => rmSync(memory)]) {
    lose();
    const refused: unknown = await serveWitness(folder, key).catch((fault: unknown) => fault);
    expect((refused as ServiceError).kind).toBe("configuration");
    expect(String(refused)).toContain(`${memory} is gone or empty`);
    expect(String(refused)).toContain("--accept-lost-memory");
  }
  await using served = await serveWitness(folder, key, "--accept-lost-memory");
  expect(await submit(served, 5)).toBe(200);
});

test("requests other than valid submissions are refused", async () => {
  await using world = await openCommands();
  await using served = await openWitnessed(world);
  const url = served.settings["WITNESS_URL"] ?? "";
  expect((await fetch(url)).status).toBe(404);
  expect((await fetch(`${url}/add-checkpoint`, { method: "POST", body: "x" })).status).toBe(400);
  expect((await fetch(`${url}/add-checkpoint`, { method: "POST", body: "x".repeat(300_000) })).status).toBe(413);
});
