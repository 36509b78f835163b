// These tests run parts of the service inside the test process.
import { afterEach, describe, expect, jest, test } from "bun:test";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { openSqliteStore } from "eventstore-lite";
import {
  openProof,
  openWitness,
  signCheckpoint,
  signingKeyOf,
  type Witness,
  checkpointFiles,
  type Witnessed,
} from "eventstore-lite/proof";
import { codec, type Event } from "../../events/event-types-and-codec.ts";
import { formatOrigin, signHead } from "../../src/log/sign-and-compare-checkpoints.ts";
import { createEventLog, SERVICE_METADATA, type EventLog } from "../../src/log/event-log.ts";
import { logFiles } from "../../src/log/log-file-paths.ts";
import { openSignedHeads, proveEvent } from "../../src/log/sign-heads-and-prove-events.ts";
import { askWitness, cosignedPosition } from "../../src/log/cosigning.ts";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { newLogFile, toLogContext } from "../harness/in-process/temporary-log.ts";
import { ALL_ROLES } from "../harness/in-process/all-roles-held.ts";

const witnessKey = signingKeyOf(new Uint8Array(32).fill(2));
const cosigner = { name: "witness.example", publicKey: witnessKey.publicKey };

const stack: (() => unknown)[] = [];
afterEach(async () => {
  jest.useRealTimers();
  for (const end of stack.splice(0).toReversed()) await end();
});

async function listen(answer: RequestListener): Promise<string> {
  const server: Server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stack.push(() => (server.closeAllConnections(), new Promise((resolve) => server.close(resolve))));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Returns a request handler that passes each request to the witness and answers what the witness answers. */
const answers =
  (witness: Witness): RequestListener =>
  (request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const { status, type, body: text } = witness.addCheckpoint(body);
      response.writeHead(status, { "content-type": type }).end(text);
    });
  };

/** Creates a log with checkpoints, and a witness for it. */
async function openWorld(file = newLogFile(), witnessFile = newLogFile()) {
  const files = logFiles(file);
  const checkpoints = checkpointFiles(files);
  const store = await openSqliteStore<Event>({ file, codec });
  stack.push(() => store[Symbol.asyncDispose]());
  const key = await checkpoints.loadKey();
  const witness = openWitness({
    file: witnessFile,
    mayBegin: true,
    cosigner,
    privateKey: witnessKey.privateKey,
    logKeys: [key.publicKey],
    clock: () => 1_764_000_000_000,
  });
  stack.push(() => witness[Symbol.dispose]());
  const eventLog = createEventLog(store, makeId);
  const said: string[] = [];
  const note = (message: string, fields?: { readonly detail?: unknown }): void =>
    void said.push(`${message}: ${String(fields?.detail)}`);
  const logger = { debug() {}, info: note, warn: note, error: note };
  return {
    store,
    checkpoints,
    key,
    witness,
    eventLog,
    said,
    run: (url: string) =>
      openSignedHeads(
        { ...toLogContext(eventLog, { clock: () => 0, logger }), checkpoints, witness: { url, cosigner } },
        ALL_ROLES,
      ),
    cosigned: () => cosignedPosition(checkpoints, key.publicKey),
    /** Asks the witness to cosign the present head or, with `root`, another history of that length. */
    async ask(url: string, old: number, root?: string): Promise<Witnessed> {
      const { position, hash } = await store.head();
      const checkpoint = { origin: formatOrigin(store), position, hash, root: root ?? "", time: undefined };
      const note =
        root === undefined ? await signHead(store, await store.head(), key, () => 0) : signCheckpoint(checkpoint, key);
      return askWitness(store, { url, cosigner }, { note, checkpoint }, old);
    },
  };
}

async function write(eventLog: EventLog, count: number): Promise<void> {
  for (let number = 1; number <= count; number++)
    await eventLog.append("requests", [{ type: "MessageRequested", data: { text: `${number}` } }], SERVICE_METADATA);
}

/** Waits for a condition that becomes true in one of the next turns of the event loop. */
async function until(isThere: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await isThere())) await new Promise(setImmediate);
}

describe("signed heads with a witness", () => {
  test("a head is cosigned, and a proof contains the cosignature", async () => {
    const world = await openWorld();
    const url = await listen(answers(world.witness));
    await write(world.eventLog, 300);
    {
      await using _heads = await world.run(url);
      await until(async () => (await world.cosigned()) === 300);
    }
    const proved = await proveEvent(world.store, world.checkpoints, () => 0, 7);
    const proof = "proof" in proved ? proved.proof : "";
    expect(openProof(proof, world.key.publicKey, cosigner)).toMatchObject({ position: 7, cosignedAt: 1_764_000_000 });
    await write(world.eventLog, 5);
    await using _heads = await world.run(url);
    await until(async () => (await world.cosigned()) === 305);
    expect(world.said.filter((one) => one.includes("witness"))).toEqual([]);
  });

  test("the service continues while the witness fails, is unreachable or lies, until it cosigns again", async () => {
    const world = await openWorld();
    let answer: RequestListener = (_, response) => void response.writeHead(500).end("no");
    const url = await listen((request, response) => answer(request, response));
    jest.useFakeTimers();
    await using _heads = await world.run(url);
    await write(world.eventLog, 1);
    const tick = async (wanted: string): Promise<void> => {
      jest.advanceTimersByTime(10_000);
      await until(() => world.said.at(-1)?.includes(wanted) === true);
    };
    await tick("answers 500");
    answer = (request) => void request.socket.destroy();
    await tick("does not answer");
    answer = (_, response) => void response.end("\u2014 witness.example AAAA\n");
    await tick("without its cosignature");
    answer = (_, response) => void response.writeHead(409, { "content-type": "text/x.tlog.size" }).end("99\n");
    await tick("it was rolled back");
    await write(world.eventLog, 1);
    answer = answers(world.witness);
    await tick("the witness cosigns again");
    expect(await world.cosigned()).toBe(2);
    expect((await world.store.head()).position).toBe(2);
  });

  test("only the witness's cosignature of the requested head is accepted", async () => {
    const world = await openWorld();
    await write(world.eventLog, 3);
    let answer: (submission: string) => string = () => "";
    const url = await listen((request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => (body += chunk.toString()));
      request.on("end", () => response.end(answer(body)));
    });
    const cosignedBy = (submission: string, name = cosigner.name, { privateKey, publicKey } = witnessKey): string => {
      const file = newLogFile();
      const [by, logKeys] = [{ name, publicKey }, [world.key.publicKey]];
      using witness = openWitness({ file, mayBegin: true, cosigner: by, privateKey, logKeys, clock: () => 0 });
      return witness.addCheckpoint(submission).body;
    };
    const hash = "11".repeat(32);
    const other = { origin: formatOrigin(world.store), position: 3, hash, root: hash, time: undefined };
    const otherHead = `old 0\n\n${signCheckpoint(other, world.key)}`;
    const otherKey = signingKeyOf(new Uint8Array(32).fill(77));
    const random = `\u2014 ${cosigner.name} ${Buffer.alloc(76, 3).toString("base64")}\n`;
    for (const [what, lie, result] of [
      ["random bytes", () => random, "unavailable"],
      ["another key", (body: string) => cosignedBy(body, cosigner.name, otherKey), "unavailable"],
      ["another name", (body: string) => cosignedBy(body, "other.example"), "unavailable"],
      ["another head", () => cosignedBy(otherHead), "unavailable"],
      ["nothing", () => "", "unavailable"],
      ["the head", (body: string) => cosignedBy(body), "cosigned"],
    ] as const) {
      answer = lie;
      expect([what, (await world.ask(url, 0)).result]).toEqual([what, result]);
    }
  });

  test("a witness that does not answer delays no append, checkpoint or stop", async () => {
    const world = await openWorld();
    let asked = 0;
    const url = await listen(() => void (asked += 1));
    {
      await using _heads = await world.run(url);
      await write(world.eventLog, 3);
      await using _other = await world.run(url);
      await until(() => asked > 0);
      await write(world.eventLog, 1);
    }
    expect((await world.store.head()).position).toBe(4);
    expect(await world.checkpoints.read()).toContain("/tree\n4\n");
    expect(await world.cosigned()).toBe(0);
  });

  test("a request from a wrong old size is repeated from the witness's size", async () => {
    const world = await openWorld();
    await write(world.eventLog, 3);
    const url = await listen(answers(world.witness));
    expect(await world.ask(url, 2)).toMatchObject({ result: "cosigned" });
    await write(world.eventLog, 2);
    expect(await world.ask(url, 0)).toMatchObject({ result: "cosigned" });
  });

  test("a log shorter than the witness's cosigned size is reported as rolled back", async () => {
    const world = await openWorld();
    const url = await listen(answers(world.witness));
    await write(world.eventLog, 3);
    const rolledBack = await world.ask(url, 0);
    expect(rolledBack).toMatchObject({ result: "cosigned" });
    const { position, hash } = await world.store.head();
    const shorter = { ...world.store, head: async () => ({ position: 2, hash, time: undefined }) };
    const checkpoint = { origin: formatOrigin(world.store), position: 2, hash, root: hash, time: undefined };
    const head = { note: signCheckpoint(checkpoint, world.key), checkpoint };
    expect(await askWitness(shorter, { url, cosigner }, head, 0)).toEqual({
      result: "split",
      detail: `the witness witness.example has cosigned ${position} events of this log, which ends at 2: it was rolled back`,
    });
    expect(await askWitness(world.store, { url, cosigner }, head, 0)).toMatchObject({ result: "stale" });
  });

  test("a split view is detected at the same size and at a larger one", async () => {
    const world = await openWorld();
    const url = await listen(answers(world.witness));
    await write(world.eventLog, 3);
    expect(await world.ask(url, 0)).toMatchObject({ result: "cosigned" });
    expect(await world.ask(url, 3, "11".repeat(32))).toMatchObject({ result: "split" });
    await write(world.eventLog, 1);
    expect(await world.ask(url, 3, "11".repeat(32))).toMatchObject({ result: "split" });
    expect(await world.ask(url, 3)).toMatchObject({ result: "cosigned" });
  });
});
