// On the process harness.
import { expect, test } from "bun:test";
import { findFreePort } from "../../src/platform/free-port.ts";
import { openInstallation, until } from "../harness/process.ts";
import { onRuntime } from "../harness/runtime.ts";

const CLICK = { event: "click", domain: "d", short_code: "s", original_url: "https://shop.example/" };

test("a service whose stderr is a file on a full disk starts, takes clicks and dispatches to the networks", async () => {
  await using world = await openInstallation();
  const port = await findFreePort("127.0.0.1");
  const service = Bun.spawn(onRuntime(["serve"]), {
    cwd: world.directory,
    env: { ...world.env, PORT: String(port), LOG_LEVEL: "debug" },
    stdio: ["ignore", "ignore", Bun.file("/dev/full")],
  });
  try {
    const url = `http://127.0.0.1:${port}`;
    const asked = (): Promise<unknown> =>
      fetch(`${url}/api/health`).then(
        (answer) => answer.json(),
        () => undefined,
      );
    const up = (health: unknown): boolean => health !== undefined || service.exitCode !== null;
    await until(asked, up);
    expect(service.exitCode).toBeNull();
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/api/tracking/event`, { method: "POST", headers, body: JSON.stringify(CLICK) });
    expect(answer.status).toBe(202);
    const settled = await until(asked, (health) => !JSON.stringify(health).match(/"pending":[1-9]/));
    expect(settled).toMatchObject({ status: "ok", channels: { chat: { pending: 0 } } });
    service.kill("SIGTERM");
    expect(await service.exited).toBe(0);
  } finally {
    service.kill("SIGKILL");
    await service.exited;
  }
});
