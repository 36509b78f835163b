// These tests call the code directly.
import { expect, test } from "bun:test";
import { DatabaseSync } from "node:sqlite";
import { startSandbox } from "../../sandbox/sandbox.ts";
import { settingsOf } from "../../sandbox/service-settings.ts";
import { loadConfig } from "../../src/config/config.ts";
import { createLogger } from "../../src/platform/logger.ts";
import { startService } from "../../src/service/service.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";

test("after a start with changed projections, the dispatchers begin, and health is ok", async () => {
  await using sandbox = await startSandbox({ port: 0 });
  using folder = temporaryFolder();
  const file = folder.file("log.sqlite");
  const env = { ...settingsOf(sandbox), PORT: "0", DATABASE_URL: `sqlite:${file}`, MESSAGE_TEMPLATE: "Hi" };
  const lines: string[] = [];
  const logger = createLogger("info", (line) => lines.push(line), Date.now);
  const post = (url: string, message: string) =>
    fetch(`${url}/api/notify`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ message }),
    });
  {
    await using service = await startService(
      loadConfig(env, () => ""),
      logger,
    );
    expect((await post(service.url, "before")).status).toBe(200);
  }
  {
    using log = new DatabaseSync(file);
    expect(log.prepare("UPDATE snapshots SET version = version + 1000").run().changes).toBeGreaterThan(0);
  }
  await using service = await startService(
    loadConfig(env, () => ""),
    logger,
    { lateAfter: 0 },
  );
  const sent = await post(service.url, "after");
  expect([200, 202]).toContain(sent.status);
  await service.projector.folded(["deliveries"]);
  const pending = () => service.projector.state("deliveries").chat.lanes.direct.pending;
  const { promise: settled, resolve } = Promise.withResolvers<void>();
  service.projector.listen(() => pending() === 0 && resolve());
  if (pending() > 0) await settled;
  expect((await post(service.url, "last")).status).toBe(200);
  const health = (await (await fetch(`${service.url}/api/health`)).json()) as { status: string; roles: object };
  expect([health.status, Object.keys(health.roles)]).toEqual(["ok", expect.arrayContaining(["dispatcher-chat"])]);
  expect(lines.join("")).toContain("projections were folded from the log");
  expect(lines.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});
