// These tests call the code directly.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { init } from "../../../src/commands/setup/init.ts";
import { loadConfig } from "../../../src/config/config.ts";
import { parseEnvFile } from "../../../src/config/env-file.ts";
import { capture } from "../../harness/capture-command.ts";
import { temporaryFolder, type TemporaryFolder } from "../../harness/temporary-folder.ts";

let folder: TemporaryFolder;
const home = process.cwd();
beforeEach(() => {
  folder = temporaryFolder();
  process.chdir(folder.path);
});
afterEach(() => {
  process.chdir(home);
  folder[Symbol.dispose]();
});

const run = (args: readonly string[], more: Partial<Parameters<typeof capture>[2]> = {}) =>
  capture(init, args, { env: {}, ...more });

function written() {
  const { values, faults } = parseEnvFile(readFileSync(".env", "utf8"), ".env", {});
  expect(faults).toEqual([]);
  return values;
}

/**
 * Simulated user who answers the questions of `init`. A question gets the first entry whose key it contains; a list has
 * the answers to repeated questions.
 */
function typist(answers: Readonly<Record<string, string | string[]>>) {
  const asked: string[] = [];
  const ask = async (question: string): Promise<string> => {
    asked.push(question);
    const [, typed = ""] = Object.entries(answers).find(([words]) => question.includes(words)) ?? [];
    return typeof typed === "string" ? typed : (typed.shift() ?? "");
  };
  return { ask, asked };
}

test("without a terminal, init writes the values of --set to a private .env", async () => {
  const message = 'Hi {{name}}, it\'s $50 off with `SAVE#1`\n---\nHello "{{name}}"\\';
  const { code, out } = await run(["--set", `MESSAGE_TEMPLATE=${message}`, "--set", "DAILY_LIMIT=7"]);
  expect(code).toBe(0);
  const { API_TOKENS, ...values } = written();
  expect(values).toEqual({ MESSAGE_TEMPLATE: message, DAILY_LIMIT: "7" });
  expect(statSync(".env").mode & 0o777).toBe(0o600);
  const token = /^token {2}(\S+)$/m.exec(out)?.[1] ?? "";
  expect(token).toStartWith("reachlog_");
  expect(readFileSync(".env", "utf8")).not.toContain(token);
  const { http, warnings } = loadConfig(written(), () => "");
  expect([http.tokens.map(({ name }) => name), warnings]).toEqual([["operator"], []]);
  expect(API_TOKENS).toContain(":scope=");
});

test("--sandbox configures all networks for a sandbox, with a separate log and a message", async () => {
  const { code, out } = await run(["--sandbox", "http://127.0.0.1:4711/"]);
  expect([code, out]).toEqual([0, expect.stringContaining("sandbox --port 4711 ")]);
  const config = loadConfig(written(), () => "");
  expect(config.x?.apiUrl).toBe("http://127.0.0.1:4711/x");
  expect(config.log).toMatchObject({ file: folder.file("data/trial/reachlog.sqlite") });
  expect(config.outreach.template?.text).toContain("{{name|there}}");
  expect(config.token?.reveal()).toBe(/^token {2}(\S+)$/m.exec(out)?.[1]);
  expect([config.meta, config.chat, config.messaging]).not.toContain(undefined);
});

test("on a terminal, init asks for missing settings and repeats a question after an invalid answer", async () => {
  writeFileSync("message.txt", "Hi {{name}}");
  const { ask, asked } = typist({
    Address: "https://reach.example",
    "Client id": "app",
    "Client secret": ["hunter2 x", "hunter2"],
    Handle: ["", "acme team", "@acme_team"],
    message: "message.txt",
    "Messages a day": ["500", "20"],
  });
  const { code, err } = await run(["--set", "QUOTA_TIMEZONE=Europe/Berlin"], { ask });
  expect(code).toBe(0);
  expect(err).not.toContain("hunter2");
  expect(err).toContain("X_ACCOUNT: missing");
  expect(err).toContain('DAILY_LIMIT: "500" is not accepted');
  expect(asked.filter((question) => question.includes("Time zone"))).toEqual([]);
  const { API_TOKENS: _, ...values } = written();
  expect(values).toEqual({
    PUBLIC_URL: "https://reach.example",
    AUTH_POLICY: "strict",
    X_CLIENT_ID: "app",
    X_CLIENT_SECRET: "hunter2",
    X_ACCOUNT: "@acme_team",
    MESSAGE_TEMPLATE_FILE: "message.txt",
    DAILY_LIMIT: "20",
    QUOTA_TIMEZONE: "Europe/Berlin",
  });
});

test("empty answers leave the defaults, documented as comments, and skip the questions about an app", async () => {
  const { ask, asked } = typist({});
  expect(await run([], { ask })).toMatchObject({ code: 0 });
  expect(asked).toHaveLength(5);
  expect(Object.keys(written())).toEqual(["API_TOKENS"]);
  const text = readFileSync(".env", "utf8");
  expect(text).toContain("\n# Direct messages a day, at most 100.\n# DAILY_LIMIT=100\n");
  expect(text).toContain("\n#   MESSAGE_TEMPLATE='Hi {{name|there}}");
});

test("init writes nothing for a faulty setting, after an interruption, or over a .env", async () => {
  const faults = async (args: readonly string[], more?: Partial<Parameters<typeof capture>[2]>) =>
    run(args, more).then(
      ({ code }) => code,
      (fault: unknown) => (fault as { kind: string }).kind,
    );
  expect(await faults(["--set", "DAILY_LIMIT=500"])).toBe("configuration");
  expect(await faults(["--set", "DAILY_LIMITS=5"])).toBe("usage");
  expect(await faults(["--set", "DAILY_LIMIT"])).toBe("usage");
  const interruption = new AbortController();
  const ask = async () => (interruption.abort(130), "");
  expect(await faults([], { ask, signal: interruption.signal })).toBe(130);
  expect(existsSync(".env")).toBe(false);
  writeFileSync(".env", "PORT=1\n");
  expect(await faults([])).toBe("conflict");
  expect(readFileSync(".env", "utf8")).toBe("PORT=1\n");
});
