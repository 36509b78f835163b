// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { openInstallation, stop, until } from "../harness/process.ts";
import { onRuntime } from "../harness/bun-deno-or-binary.ts";

test("serve on a terminal shows its address, its log, the configuration and the setup page", async () => {
  await using world = await openInstallation();
  const { TELEGRAM_BOT_TOKEN: _, TELEGRAM_CHAT_ID: __, ...env } = world.env;
  let seen = "";
  const child = Bun.spawn(onRuntime(["serve"]), {
    cwd: world.directory,
    env: { ...env, TERM: "xterm" },
    terminal: { data: (_terminal, bytes) => void (seen += Buffer.from(bytes).toString()) },
  });
  await until(
    async () => seen,
    (text) => text.includes("Stop with Ctrl-C."),
  );
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  const url = /serves (http:\S+)/.exec(seen)?.[1]?.replace("\u001b[22m", "");
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(seen).toContain(`log             ${join(world.directory, "reachlog.sqlite")}\r\n`);
  expect(seen).toContain("configured      outreach (X_CLIENT_ID), the message (MESSAGE_TEMPLATE), ads, chat\r\n");
  expect(seen).toContain("not configured  messaging\r\n");
  expect(seen).toContain(`${url}/setup\r\n`);
  expect(seen).not.toContain(env["API_TOKENS"]?.split(":")[1]);
});

test("serve without a terminal logs JSON lines, with a warning about a misspelt setting", async () => {
  await using world = await openInstallation();
  const service = await world.serve({ DAILY_LIMITS: "10" });
  expect(await stop(service)).toBe(0);
  const lines = service.log().trim().split("\n");
  const messages = lines.map((line) => JSON.parse(line) as { level: string; message: string });
  expect(messages).toContainEqual(
    expect.objectContaining({
      level: "warn",
      message: "DAILY_LIMITS is no setting and has no effect. Did you mean DAILY_LIMIT?",
    }),
  );
});
