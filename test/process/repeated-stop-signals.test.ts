// These tests start the service or commands as processes.
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { PAST_LIFE_MS, holdTokens } from "./delay-x-token-answers.ts";
import {
  authorize,
  openInstallation,
  until,
  untilListening,
  type Running,
  type Installation,
} from "../harness/process.ts";

const ROOT = join(import.meta.dirname, "../..");

/** Runs `bun run reachlog serve` with the script of package.json in a separate process group, as a shell does. */
async function serveByScript(world: Installation): Promise<Running & Disposable> {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { scripts: { reachlog: string } };
  const reachlog = scripts.reachlog.replace("src/main.ts", join(ROOT, "src/main.ts"));
  world.file("package.json", JSON.stringify({ scripts: { reachlog } }));
  const child = Bun.spawn([process.execPath, "run", "reachlog", "serve"], {
    cwd: world.directory,
    env: world.env,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const group = {
    [Symbol.dispose]() {
      try {
        process.kill(-child.pid, "SIGKILL");
      } catch {
        // All processes of the group have ended already.
      }
    },
  };
  return { ...(await untilListening(child)), ...group };
}

describe("a signal from the process group that bun run repeats", () => {
  test.each(["SIGINT", "SIGTERM"] as const)("still lets a refresh store its new tokens: %s", async (signal) => {
    await using world = await openInstallation();
    using held = holdTokens(world);
    const { x, clock } = world.sandbox;
    using service = await serveByScript(world);
    await authorize(service, world.sandbox);
    clock.advance(PAST_LIFE_MS);
    const asked = held.hold(1);
    service.get("/social/me").catch(() => {});
    await asked;
    process.kill(-service.process.pid, signal);
    await until(
      async () => service.log(),
      (log) => log.includes('"message":"stopping"'),
    );
    // This request gets the 401 for which the proxy waits, so the proxy now lets the answer to the refresh through. X
    // has already used up the refresh token, so the service must store that answer before it exits.
    expect((await fetch(`${held.beside}/2/users/me`)).status).toBe(401);
    expect(await service.process.exited).toBe(0);
    const next = await world.serve();
    expect((await next.get("/social/me")).status).toBe(200);
    expect([...x.refreshUses.values()]).toEqual([1]);
  });
});

/** Returns the addresses that the demo prints once it serves: its own and its sandbox's. */
async function untilServing({ stdout }: Running["process"]): Promise<{ url: string; sandbox: string }> {
  let seen = "";
  for await (const chunk of stdout.pipeThrough(new TextDecoderStream())) {
    seen += chunk;
    const [, url, sandbox] = /^reachlog +(\S+)[^]*^sandbox +(\S+)[^]*Ctrl-C/m.exec(seen) ?? [];
    if (url !== undefined && sandbox !== undefined) return { url, sandbox };
  }
  throw new Error(`the demo ended: ${seen}`);
}

test("a demo that hangs while stopping exits at a later signal, and removes its folder", async () => {
  await using world = await openInstallation();
  const folders = () => readdirSync(world.directory).filter((name) => name.startsWith("reachlog-demo-"));
  const demo = world.start(["demo", "--port", "0", "--sandbox-port", "0"], { TMPDIR: world.directory });
  const { url, sandbox } = await untilServing(demo);
  expect(folders()).toHaveLength(1);
  // The sandbox's X leaves the demo's request for a token unanswered. The demo waits for the answer, so it cannot stop
  // in an orderly way.
  const faults = `${sandbox}/_sandbox/faults`;
  const hanging = { network: "x", kind: "timeout_before", path: "/oauth2/token", count: 1 };
  await fetch(faults, { method: "POST", body: JSON.stringify(hanging) });
  const get = (path: string, init: RequestInit = {}) => fetch(url + path, { redirect: "manual", ...init });
  authorize({ get }, world.sandbox).catch(() => {});
  await until(
    async () => (await fetch(faults)).json(),
    (left) => (left as unknown[]).length === 0,
  );
  await until(
    async () => {
      demo.kill("SIGINT");
      return demo.exitCode;
    },
    (code) => code !== null,
  );
  expect([demo.exitCode, folders()]).toEqual([130, []]);
});
