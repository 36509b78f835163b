import { expect, test } from "bun:test";
import { copyFileSync, mkdirSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { logFiles, type LogFiles } from "../../src/log/log-file-paths.ts";
import { CLICK } from "../harness/sample-click.ts";
import { openInstallation, stop, until, type Running } from "../harness/process.ts";
import { startLoad } from "./click-load.ts";
import { expectWhole, lossesOf } from "./expect-whole-log.ts";
import { openWitness, readPublicKey } from "./witness-process.ts";

const FLAGS = ["--preload", join(import.meta.dirname, "frequent-head-signing.ts")];

/** Number of clicks acknowledged while the witness misbehaves. */
const CLICKS_EACH = 200;

/**
 * Starts a server at the address where the service expects the witness. It passes requests on to the witness or
 * misbehaves.
 */
async function startFront(witness: string) {
  let answer: RequestListener;
  let server: Server;
  let port = 0;
  const listen = async (): Promise<void> => {
    server = createServer((request, response) => answer(request, response));
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    ({ port } = server.address() as AddressInfo);
  };
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const forward: RequestListener = (request, response) => {
    const body = Array.fromAsync(request as AsyncIterable<Buffer>).then((parts) => Buffer.concat(parts));
    void body
      .then((bytes) => fetch(`${witness}/add-checkpoint`, { method: "POST", body: bytes }))
      .then(async (answered) => {
        const headers = { "content-type": answered.headers.get("content-type") ?? "" };
        response.writeHead(answered.status, headers).end(await answered.text());
      })
      .catch(() => response.destroy());
  };
  answer = forward;
  await listen();
  return {
    url: `http://127.0.0.1:${port}`,
    listen,
    close,
    forward: () => void (answer = forward),
    answer: (next: RequestListener) => void (answer = next),
    [Symbol.asyncDispose]: close,
  };
}

type Front = Awaited<ReturnType<typeof startFront>>;

/** Misbehaviours of a witness, each with what the service logs about it. */
const TROUBLES: Readonly<Record<string, readonly [begin: (front: Front) => Promise<void> | void, said: string]>> = {
  "is down": [(front) => front.close(), "does not answer"],
  errs: [(front) => front.answer((_, response) => void response.writeHead(500).end()), "answers 500"],
  "is slow": [(front) => front.answer(() => {}), "does not answer"],
  "lies about its cosignature": [
    (front) => front.answer((_, response) => void response.end("\u2014 reachlog-witness AAAA\n")),
    "without its cosignature",
  ],
  "lies about what it knows": [
    (front) =>
      front.answer(
        (_, response) => void response.writeHead(409, { "content-type": "text/x.tlog.size" }).end("999999999\n"),
      ),
    "it was rolled back",
  ],
};

const FILES = ["log", "keys", "vault", "checkpoint", "cosigned"] as const satisfies (keyof LogFiles)[];

test("a faulty witness costs no append, and a rolled-back log is reported", async () => {
  await using world = await openInstallation();
  Object.assign(world.env, {
    CHAT_WEBHOOK_URL: "",
    TELEGRAM_BOT_TOKEN: "",
    TELEGRAM_CHAT_ID: "",
    SIGNED_HEADS: "/dev/null",
  });
  await stop(await world.serve());
  const witness = await openWitness(world, await readPublicKey(world));
  await using front = await startFront(witness.settings["WITNESS_URL"] ?? "");
  Object.assign(world.env, witness.settings, { WITNESS_URL: front.url });
  const service = await world.serve({}, FLAGS);
  using load = startLoad({ connections: 4, service: async () => service });
  const untilMore = async (): Promise<void> => {
    const wanted = load.acknowledged.size + CLICKS_EACH;
    await until(
      async () => load.acknowledged.size,
      (size) => size >= wanted,
    );
  };
  const untilSaid = async (count: number, sentence: string): Promise<void> => {
    await until(
      async () => service.log().split(sentence).length - 1,
      (times) => times >= count,
    );
  };
  await untilMore();
  let troubles = 0;
  for (const [begin, said] of Object.values(TROUBLES)) {
    const before = service.log().split(said).length - 1;
    await begin(front);
    await untilSaid(before + 1, said);
    await untilMore();
    front.forward();
    if (begin === TROUBLES["is down"]![0]) await front.listen();
    await untilSaid(++troubles, "the witness cosigns again");
  }
  await witness.restart();
  const answered = witness.said.length;
  await until(
    async () => witness.said.slice(answered),
    (lines) => lines.some((line) => line.startsWith("200 ")),
  );
  await untilMore();
  await load.stop();
  expect([...load.answers.keys()]).toEqual([202]);
  expect(await stop(service)).toBe(0);
  const { lost, doubled } = await lossesOf(world, load.acknowledged);
  console.log(
    `a witness in trouble ${troubles} times, and restarted: acknowledged ${load.acknowledged.size}, lost ${lost.length}, doubled ${doubled.length}`,
  );
  expect({ lost, doubled }).toEqual({ lost: [], doubled: [] });
  await expectWhole(world);

  // Restores the log and its side files to their state before the witness cosigned newer heads.
  const files = logFiles(join(world.directory, "reachlog.sqlite"));
  const copies = logFiles(join(world.directory, "copies", "reachlog.sqlite"));
  mkdirSync(join(world.directory, "copies"));
  for (const name of FILES) copyFileSync(files[name], copies[name]);
  const cosign = async (running: Running): Promise<void> => {
    const before = witness.said.length;
    expect((await running.post("/api/tracking/event", CLICK)).status).toBe(202);
    await until(
      async () => witness.said.slice(before),
      (lines) => lines.some((line) => line.startsWith("200 ")),
    );
    expect(await stop(running)).toBe(0);
  };
  for (let time = 0; time < 3; time++) await cosign(await world.serve({}, FLAGS));
  for (const name of FILES) copyFileSync(copies[name], files[name]);
  const rolledBack = await world.serve();
  await until(
    async () => rolledBack.log(),
    (log) => log.includes("it was rolled back"),
  );
  expect((await rolledBack.post("/api/tracking/event", CLICK)).status).toBe(202);
  expect(await stop(rolledBack)).toBe(0);
});
