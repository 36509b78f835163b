// These tests call the code directly.
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { parseKey } from "../../src/vault/derive-keys.ts";
import { loadKeyFile } from "../../src/vault/master-key.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";

test("loading creates the key file once, readable by its owner only, and no other file", () => {
  using directory = temporaryFolder();
  const file = directory.file("key");
  const key = loadKeyFile(file);
  expect(key).toHaveLength(32);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, "utf8")).toMatch(/^[0-9a-f]{64}\n$/);
  expect(loadKeyFile(file)).toEqual(key);
  expect(readdirSync(dirname(file))).toEqual(["key"]);
});

test("processes that create the same key file at once load the same key", async () => {
  using directory = temporaryFolder();
  // All processes load the same hundred files one after the other, so that they often load one at the same time.
  const script = `import { loadKeyFile } from ${JSON.stringify(require.resolve("../../src/vault/master-key.ts"))};
    await new Response(Bun.stdin.stream()).text();
    for (let file = 0; file < 100; file++) {
      console.log(Buffer.from(loadKeyFile(process.argv[1] + file)).toString("hex"));
    }`;
  const start = () =>
    Bun.spawn([process.execPath, "-e", script, directory.file("key")], { stdin: "pipe", stderr: "inherit" });
  const processes = [start(), start(), start(), start()];
  for (const { stdin } of processes) await stdin.end();
  const printed = await Promise.all(processes.map(async ({ stdout }) => await new Response(stdout).text()));
  expect(new Set(printed).size).toBe(1);
  expect(printed[0]).toMatch(/^(?:[0-9a-f]{64}\n){100}$/);
});

test.each([
  ["", "an empty file"],
  ["secret", "too short"],
  ["0".repeat(63), "a digit lost"],
  ["z".repeat(64), "no hex"],
])("a key file with the content %j is refused and left unchanged (%s)", (content) => {
  using directory = temporaryFolder();
  const file = directory.file("key");
  writeFileSync(file, content);
  expect(() => loadKeyFile(file)).toThrow("holds no key: 64 hex digits or base64 of 32 bytes");
  expect(readFileSync(file, "utf8")).toBe(content);
});

test("the error about a malformed key does not contain the key", () => {
  expect(() => parseKey("hunter2", "REACHLOG_KEY")).toThrow(/^REACHLOG_KEY holds no key/);
  expect(() => parseKey("hunter2", "REACHLOG_KEY")).not.toThrow(/hunter2/);
});
