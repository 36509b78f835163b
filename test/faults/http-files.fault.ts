import { readdirSync } from "node:fs";
import { expect, test } from "bun:test";
import { openTarget } from "../http/attacks/target.ts";
import { until } from "../harness/process.ts";
import { click } from "./load.ts";
import { has, run } from "./tools.ts";

/** Connections that a service which has no more file descriptors cannot take. */
const IDLERS = 100;
const DESCRIPTORS_LEFT = 40;

/** Half a request is hung up on after some 12 s; those that waited for the place come after it, in three groups. */
const RECOVERY_MS_MAX = 60_000;

/** How long one asks a service that may not take the connection. */
const PATIENCE_MS = 1_000;

test.skipIf(!has("prlimit"))(
  `${IDLERS} idle connections to a service with file descriptors for ${DESCRIPTORS_LEFT}: it goes on, and takes clicks again`,
  async () => {
    await using target = await openTarget({ AUTH_POLICY: "spec" });
    const { service, open } = target;
    const pid = service.process.pid;
    const limit = readdirSync(`/proc/${pid}/fd`).length + DESCRIPTORS_LEFT;
    await run("prlimit", `--pid=${pid}`, `--nofile=${limit}:${limit}`);
    const idlers = await Promise.all(Array.from({ length: IDLERS }, () => open()));
    // A connection that says nothing at all is kept by the kernel.
    for (const idler of idlers) await idler.write("GET ");
    const startedAt = performance.now();
    let refused = 0;
    const post = async (): Promise<number> => {
      const init = { method: "POST", headers: { "content-type": "application/json", connection: "close" } };
      const body = JSON.stringify(click(1));
      const signal = AbortSignal.timeout(PATIENCE_MS);
      const answer = await fetch(`${service.url}/api/tracking/event`, { ...init, body, signal }).catch(() => undefined);
      if (answer === undefined) refused += 1;
      return answer?.status ?? 0;
    };
    // One of those that are let in again may come before the last idle connections.
    for (let served = 0; served < 5; served++) await until(post, (status) => status === 202, RECOVERY_MS_MAX);
    const recoveredMs = performance.now() - startedAt;
    for (const idler of idlers) idler[Symbol.dispose]();
    console.log(
      `| ${IDLERS} idle connections, no file descriptors left | ${IDLERS} | crashes 0, served again without a restart | ` +
        `not served ${refused} times for ${PATIENCE_MS} ms, served again after ${(recoveredMs / 1000).toFixed()} s |`,
    );
    expect([service.process.exitCode, refused > 0]).toEqual([null, true]);
    expect((await target.recorded()).length).toBeGreaterThanOrEqual(5);
  },
  180_000,
);
