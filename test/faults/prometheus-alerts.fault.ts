import { expect, test } from "bun:test";
import { join } from "node:path";
import { BEARER, openInstallation } from "../harness/process.ts";
import { has, run } from "./required-tools.ts";

const folder = join(import.meta.dirname, "../../deploy/observability");
const hasPromtool = has("promtool");

test.skipIf(!hasPromtool)("each alert fires in its case, and none while all is well", async () => {
  await run("promtool", "check", "rules", join(folder, "alerts.yml"));
  await run("promtool", "check", "config", "--syntax-only", join(folder, "prometheus.yml"));
  expect(await run("promtool", "test", "rules", join(folder, "alerts.test.yml"))).toContain("SUCCESS");
});

test.skipIf(!hasPromtool)("Prometheus's promtool accepts the metrics of a running service", async () => {
  await using world = await openInstallation();
  const service = await world.serve();
  await service.post("/api/notify", { message: "to be counted" });
  const figures = await (await service.get("/metrics", { headers: BEARER })).text();
  const checked = Bun.spawnSync(["promtool", "check", "metrics"], { stdin: new TextEncoder().encode(figures) });
  expect([checked.exitCode, String(checked.stdout), String(checked.stderr)]).toEqual([0, "", ""]);
  expect(figures).toContain('reachlog_http_answers_total{endpoint="POST /api/notify",status="200"} 1');
});
