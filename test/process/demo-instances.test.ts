// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { startDemo } from "../harness/demo.ts";
import { until } from "../harness/process.ts";
import { MAIN, RUNTIME } from "../harness/bun-deno-or-binary.ts";
import { temporaryFolder } from "../../src/platform/new-file.ts";

const CLICK = { event: "click", domain: "go.example", short_code: "welcome", original_url: "https://shop.example/" };

async function positionAt(url: string): Promise<number> {
  const health = (await (await fetch(`${url}/api/health`)).json()) as { log: { position: number } };
  return health.log.position;
}

async function clickAt(url: string): Promise<number> {
  const headers = { "content-type": "application/json" };
  return (await fetch(`${url}/api/tracking/event`, { method: "POST", headers, body: JSON.stringify(CLICK) })).status;
}

/** True if a service answers; a killed one refuses the connection. */
async function isServing(url: string): Promise<boolean> {
  return fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}

const isTrue = (found: boolean): boolean => found;
const isFalse = (found: boolean): boolean => !found;

test.each([
  ["SIGINT", 0],
  ["SIGKILL", 137],
] as const)("a demo's instances share one log, one restarts after a kill, and %s ends all", async (signal, code) => {
  // Only the source on Bun brings a database server for the instances. Elsewhere the demo must refuse to start them.
  if (RUNTIME !== "bun") await expectRefused([]);
  if (RUNTIME === "deno") return;
  using folder = temporaryFolder("reachlog-demo-instances-");
  await using demo = await startDemo(folder.path, ["--instances", "2"], { module: MAIN });
  const urls = [...demo.printed.matchAll(/http:\/\/127\.0\.0\.1:\d+(?= +\()/g)].map(([url]) => url);
  expect(urls.length).toBe(3);
  const [first = "", second = "", sandbox = ""] = urls;
  const page = async (): Promise<string> => (await fetch(sandbox)).text();
  const press = (button: "kill" | "start") =>
    fetch(`${sandbox}/_sandbox/instances/${button}`, {
      method: "POST",
      body: new URLSearchParams({ url: first, page: "/" }),
    });

  const before = await positionAt(second);
  expect(await clickAt(first)).toBe(202);
  await until(
    () => positionAt(second),
    (position) => position > before,
  );

  // Kills and restarts an instance in one case only, because the signal by which the demo ends makes no difference to
  // that.
  if (signal === "SIGINT") {
    expect((await press("kill")).status).toBe(200);
    await until(() => isServing(first), isFalse);
    await until(page, (text) => text.includes("was killed"));
    expect(await clickAt(second)).toBe(202);
    await press("start");
    await until(() => isServing(first), isTrue);
    expect(await page()).not.toContain("was killed");
    expect(await positionAt(first)).toBeGreaterThan(before + 1);
  }

  expect(await demo.end(signal)).toBe(code);
  for (const url of [first, second]) await until(() => isServing(url), isFalse);
  // A demo that is killed cannot remove its files.
  if (signal === "SIGINT") expect(readdirSync(folder.path)).toEqual([]);
});

async function expectRefused(more: readonly string[]): Promise<void> {
  using folder = temporaryFolder("reachlog-demo-instances-");
  await using demo = await startDemo(folder.path, ["--instances", "2", ...more]);
  expect(demo.printed).toBe("");
  expect(await demo.end("SIGCONT")).toBe(2);
}

test("a demo with instances refuses --keep", () => expectRefused(["--keep", "."]));
