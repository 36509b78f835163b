import { readdirSync } from "node:fs";
import { expect, test } from "bun:test";
import { openTarget } from "../http/attacks/target.ts";
import { until } from "../harness/process.ts";
import { click } from "./click-load.ts";
import { has, run } from "./required-tools.ts";

/** Number of idle connections: more than a service with so few file descriptors can accept. */
const IDLERS = 100;
const DESCRIPTORS_LEFT = 40;

/**
 * Maximum time in ms until waiting connections are served. The service closes a half-sent request after about 12 s, and
 * then accepts the next group of three.
 */
const RECOVERY_MS_MAX = 60_000;

/** Time in ms that a client waits for a service that may be unable to accept connections. */
const PATIENCE_MS = 1_000;

test.skipIf(!has("prlimit"))(
  `a service with ${DESCRIPTORS_LEFT} free file descriptors accepts clicks again after ${IDLERS} idle connections`,
  async () => {
    await using target = await openTarget({ AUTH_POLICY: "spec" });
    const { service, open } = target;
    const pid = service.process.pid;
    const limit = readdirSync(`/proc/${pid}/fd`).length + DESCRIPTORS_LEFT;
    await run("prlimit", `--pid=${pid}`, `--nofile=${limit}:${limit}`);
    const idlers = await Promise.all(Array.from({ length: IDLERS }, () => open()));
    // Each connection sends some bytes, because the kernel hands a connection to the service only once it has sent
    // something.
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
    // The service may accept a new request before the last idle connections, which then use up the file descriptors
    // again. So one success is not enough: five are required.
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
);
