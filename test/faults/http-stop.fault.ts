import { expect } from "bun:test";
import { testAttacks, type Attack } from "../http/attacks/attack.ts";
import { JSON_TYPE } from "../http/wire/raw-request-bytes.ts";
import { openConnection, type Connection } from "../http/wire/connection.ts";
import { exported, openInstallation, until, stop } from "../harness/process.ts";
import { startLoad } from "./click-load.ts";

const STOPS = 3;
const SHUTDOWN_SECONDS = 10;
const STUCK_EACH = 10;

/**
 * Returns the first bytes that stuck clients send. After them, each client sends nothing more and leaves its connection
 * open.
 */
const STUCK = (host: string): readonly string[] => [
  "",
  "GET /api/health HTTP/1.1\r\n",
  `GET /api/health HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  `POST /api/notify HTTP/1.1\r\nHost: ${host}\r\n${JSON_TYPE}\r\nContent-Length: 99\r\n\r\n{`,
  `POST /api/notify HTTP/1.1\r\nHost: ${host}\r\n${JSON_TYPE}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{`,
  `GET /openapi.json HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(40),
];

const stopping: Attack<undefined> = {
  name: `the service stops in order on SIGTERM with stuck clients at each stage of a request`,
  expected: "exit 0 in order and in time; acknowledged and lost 0; recorded and not answered 0",
  async run() {
    await using world = await openInstallation();
    world.env["SHUTDOWN_SECONDS"] = String(SHUTDOWN_SECONDS);
    const acknowledged = new Set<string>();
    const wrong: string[] = [];
    let slowestMs = 0;
    let stuck = 0;
    for (let time = 0; time < STOPS; time++) {
      const service = await world.serve();
      const connections: Connection[] = [];
      for (const bytes of STUCK(new URL(service.url).host)) {
        for (let each = 0; each < STUCK_EACH; each++) {
          const connection = await openConnection(service.url);
          connection.stopReading();
          await connection.write(bytes);
          connections.push(connection);
        }
      }
      stuck += connections.length;
      using load = startLoad({ connections: 32, service: () => Promise.resolve(service) });
      await until(
        () => Promise.resolve(load.acknowledged.size),
        (size) => size > 300,
      );
      const signalledAt = performance.now();
      const code = await stop(service);
      slowestMs = Math.max(slowestMs, performance.now() - signalledAt);
      await load.stop();
      for (const connection of connections) connection[Symbol.dispose]();
      for (const id of load.acknowledged) acknowledged.add(id);
      if (code !== 0) wrong.push(`exit ${code}`);
      if (service.log().includes("stopped before everything")) wrong.push("not everything had ended");
    }
    const clicks = (await exported(world)).filter(({ type }) => type === "LinkClicked");
    const recorded = new Set(clicks.map((event) => (event as unknown as { id: string }).id));
    const lost = [...acknowledged].filter((id) => !recorded.has(id)).length;
    const unanswered = [...recorded].filter((id) => !acknowledged.has(id)).length;
    if (lost + unanswered > 0) wrong.push("see the row");
    if (slowestMs > SHUTDOWN_SECONDS * 1000) wrong.push(`took ${slowestMs.toFixed()} ms`);
    expect(await world.execute("audit", "verify")).toMatchObject({ code: 0 });
    const seen = `acknowledged ${acknowledged.size}, lost ${lost}, recorded and not answered ${unanswered}, slowest end ${slowestMs.toFixed()} ms`;
    return { tried: stuck, seen, wrong };
  },
};

testAttacks([stopping], () => undefined, 180_000);
