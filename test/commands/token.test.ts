// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { chownSync, existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { token } from "../harness/in-process/operation-commands.ts";
import { loadConfig } from "../../src/config/config.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";
import { createAuthentication } from "../../src/http/access/bearer-tokens.ts";
import { capture, type Captured } from "../harness/capture-command.ts";

let directory: ReturnType<typeof temporaryFolder>;
let file: string;
let env: Record<string, string>;
beforeEach(() => {
  directory = temporaryFolder();
  file = directory.file("tokens");
  env = { API_TOKENS_FILE: file };
});
afterEach(() => directory[Symbol.dispose]());

const run = (...args: string[]): Promise<Captured> =>
  capture(token, args, { env }).catch((fault: unknown) => ({ code: -1, out: "", err: String(fault) }));

interface Made {
  readonly name: string;
  readonly id: string;
  readonly token: string;
  readonly entry: string;
}
const made = async (...args: string[]): Promise<Made> => JSON.parse((await run("new", ...args, "--json")).out) as Made;
const callers = () => loadConfig(env, (path) => readFileSync(path, "utf8")).http.tokens.map(({ name }) => name);

test("new prints a token, and the entry to configure, which contains its hash", async () => {
  const { out } = await run("new", "web");
  const shown = /token {2}(reachlog_[\w-]{43})\nid {5}([0-9a-f]{12})\nentry {2}(web:sha256:([0-9a-f]{64}))\n/.exec(out);
  const [, secret = "", id, entry = "", sha256] = shown ?? [];
  expect(sha256).toBe(createHash("sha256").update(secret).digest("hex"));
  expect(sha256?.startsWith(id ?? "none")).toBe(true);
  env = { API_TOKENS: entry };
  expect(callers()).toEqual(["web"]);
  expect(existsSync(file)).toBe(false);
});

test("tokens are different", async () => {
  const tokens = await Promise.all([made("web"), made("web"), made("web")]);
  expect(new Set(tokens.map((one) => one.token)).size).toBe(3);
});

test("--add appends the entry, not the token, to a private file", async () => {
  const first = await made("web", "--add");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, "utf8")).toBe(`${first.entry}\n`);
  writeFileSync(file, `# ours\n${first.entry}`);
  const second = await made("ops", "--add");
  expect(readFileSync(file, "utf8")).toBe(`# ours\n${first.entry}\n${second.entry}\n`);
  expect(callers()).toEqual(["web", "ops"]);
});

test("--add creates the folder of the file", async () => {
  const [folder, deep] = [directory.file("data"), directory.file("data/secret/tokens")];
  env = { API_TOKENS_FILE: deep };
  const { code, err } = await run("new", "web", "--add");
  expect([code, err]).toEqual([0, expect.stringContaining(`The entry is in ${deep}.`)]);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(callers()).toEqual(["web"]);
});

test.each([
  ["a b", "letters, digits"],
  ["", "letters, digits"],
  ["anonymous", "is reserved in the log: choose another one"],
  ["Reachlog", "is reserved in the log: choose another one"],
  ["command-line", "is reserved in the log: choose another one"],
  ["x".repeat(65), "1 to 64"],
])("the name %j is refused, and no token is created", async (name, problem) => {
  const { code, out, err } = await run("new", name, "--add");
  expect([code, out, existsSync(file)]).toEqual([-1, "", false]);
  expect(err).toContain(problem);
});

test("new limits a token by scopes, expiry and links", async () => {
  const limits = ["--scope", "track", "--scope", "read", "--scope", "track", "--links", "Go.example"];
  const { entry } = await made("web", ...limits, "--expires", "2100-02-24");
  expect(entry).toEndWith(":scope=track+read:expires=2100-02-24:links=go.example");
  const inDays = await made("web", "--scope", "read", "--expires", "90d");
  env = { API_TOKENS: inDays.entry };
  const [token] = loadConfig(env, () => "").http.tokens;
  expect(Math.abs((token?.expiresAt ?? 0) - Date.now() - 90 * 86_400_000)).toBeLessThan(60_000);
});

test("a token that expires on a day is valid until the end of that day", async () => {
  const { entry } = await made("web", "--scope", "read", "--expires", "2100-02-24");
  env = { API_TOKENS: entry };
  const [token] = loadConfig(env, () => "").http.tokens;
  const lastMoment = Date.parse("2100-02-24T23:59:59.999Z");
  const sessions = createAuthentication({ tokens: [token!], authPolicy: "spec", openRoutes: [] }, () => clock.now);
  const clock = { now: lastMoment };
  expect(sessions.find(token!)).toBeDefined();
  clock.now++;
  expect(sessions.find(token!)).toBeUndefined();
  expect((await run("list")).out).toContain("2100-02-24");
});

test("a token may expire today", async () => {
  const today = new Date().toISOString().slice(0, 10);
  expect((await made("web", "--scope", "read", "--expires", today)).entry).toContain(`expires=${today}`);
});

test.each([
  [["--scope", "everything"], "a scope is one of track, notify"],
  [["--expires", "0d"], "days from now"],
  [["--expires", "2026-01-01"], "days from now"],
  [["--expires", "soon"], "days from now"],
  [["--links", "go.example"], "--links needs --scope track"],
  [["--scope", "track", "--links", "https://go.example"], "--links needs 1 to 20 domains"],
])("%j is refused, and no token is created", async (args, problem) => {
  const { code, out, err } = await run("new", "web", "--add", ...args);
  expect([code, out, existsSync(file)]).toEqual([-1, "", false]);
  expect(err).toContain(problem);
});

test("list shows the name, id and place of each token, but not the token", async () => {
  const { id, token: secret, entry } = await made("web", "--add");
  env["API_TOKENS"] = "ops:0123456789abcdef";
  const { out } = await run("list");
  expect(out).toContain("ops   9f9f5111f7b2  all     never    never      API_TOKENS\n");
  expect(out).toContain(`web   ${id}  all     never    never      API_TOKENS_FILE\n`);
  for (const hidden of [secret, entry, "0123456789abcdef"]) expect(out).not.toContain(hidden);
});

describe("remove", () => {
  test("removes one token from the file and leaves the rest unchanged", async () => {
    const [old, other] = [await made("web", "--add"), await made("ops", "--add")];
    writeFileSync(file, `# for the site\n${readFileSync(file, "utf8")}\n# end\n`);
    expect((await run("remove", old.id)).code).toBe(0);
    expect(readFileSync(file, "utf8")).toBe(`# for the site\n${other.entry}\n\n# end\n`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test("shows with --json the removed token's name and id", async () => {
    const [first] = [await made("web", "--add"), await made("other", "--add")];
    expect(JSON.parse((await run("remove", first.id, "--json")).out)).toEqual({ name: "web", id: first.id });
  });

  test("finds a plain token by its hash", async () => {
    await made("ops", "--add");
    writeFileSync(file, `${readFileSync(file, "utf8")}web:0123456789abcdef\n`);
    expect((await run("remove", "9f9f5111f7b2")).out).toBe("web 9f9f5111f7b2 is removed\n");
    expect(callers()).toEqual(["ops"]);
  });

  test.skipIf(process.getuid?.() !== 0)("by root keeps the file's owner and mode", async () => {
    const [old] = [await made("web", "--add"), await made("ops", "--add")];
    chownSync(file, 4242, 4243);
    expect((await run("remove", old.id)).code).toBe(0);
    const { uid, gid, mode } = statSync(file);
    expect([uid, gid, mode & 0o777]).toEqual([4242, 4243, 0o600]);
  });

  test("follows a symbolic link to the file", async () => {
    const [old] = [await made("web", "--add"), await made("ops", "--add")];
    const link = directory.file("link");
    symlinkSync(file, link);
    env = { API_TOKENS_FILE: link };
    expect((await run("remove", old.id)).code).toBe(0);
    expect(callers()).toEqual(["ops"]);
    expect(readFileSync(file, "utf8")).not.toContain(old.id);
  });

  test.each([
    ["the last one", (only: string) => only, "it is the only token"],
    ["an unknown one", () => "0000000000", "no token has this id"],
    ["one from API_TOKENS", () => "9f9f5111f7b2", "remove it there"],
  ])("refuses %s", async (_what, idOf, problem) => {
    const only = await made("web", "--add");
    if (problem.startsWith("remove it")) env["API_TOKENS"] = "ops:0123456789abcdef";
    const before = readFileSync(file, "utf8");
    const { code, err } = await run("remove", idOf(only.id));
    expect([code, readFileSync(file, "utf8")]).toEqual([1, before]);
    expect(err).toContain(problem);
  });

  test.each(["", "ab", "zzzz", "../x", "a.*b"])("rejects %j as an id", async (id) => {
    await made("web", "--add");
    await made("web", "--add");
    expect((await run("remove", id)).err).toContain("needs an id");
  });
});
