// These tests call the code directly.
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../harness/temporary-folder.ts";

const SANDBOX = join(import.meta.dirname, "../../sandbox");

/** A project with the package, and nothing else of the repository. */
function createProject() {
  const project = temporaryFolder();
  mkdirSync(project.file("node_modules/@reachlog"), { recursive: true });
  symlinkSync(SANDBOX, project.file("node_modules/@reachlog/sandbox"));
  writeFileSync(project.file("package.json"), '{ "type": "module" }');
  return project;
}

test("the README's example starts the networks in another project", () => {
  using project = createProject();
  const [, example = ""] = /```ts\n(.*?)```/s.exec(readFileSync(join(SANDBOX, "README.md"), "utf8")) ?? [];
  writeFileSync(project.file("example.ts"), example);
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "example.ts"], { cwd: project.path });
  expect([stdout.toString(), stderr.toString()]).toEqual(['[ "hello" ]\n429 30\n', ""]);
});

test("one command serves the networks and prints their URLs and credentials", async () => {
  using project = createProject();
  const command = [process.execPath, "node_modules/@reachlog/sandbox/main.ts", "--port", "0"];
  await using process_ = Bun.spawn(command, { cwd: project.path, stdout: "pipe" });
  let printed = "";
  for await (const chunk of process_.stdout) {
    printed += new TextDecoder().decode(chunk);
    if (printed.endsWith("}\n")) break;
  }
  const { urls, credentials } = JSON.parse(printed) as Record<"urls" | "credentials", Record<string, string>>;
  const answer = await fetch(`${urls["telegram"]}/bot${credentials["telegramBotToken"]}/getMe`);
  expect(answer.status).toBe(200);
});
