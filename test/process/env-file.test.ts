// These tests start the service or commands as processes.
import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { captureCommandLine } from "../harness/capture-command.ts";
import { ended } from "../harness/process.ts";
import { DENO_DIR, denoProgram, MAIN, onRuntime, RUNTIME, RUNTIME_ENV } from "../harness/bun-deno-or-binary.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";

const RUNTIMES: readonly (readonly [string, readonly string[]])[] = [
  ["Bun", [process.execPath, "--no-install", MAIN]],
  ["Bun without its own reading of .env", [process.execPath, "--no-env-file", MAIN]],
  ["Deno", [denoProgram(), "run", "--allow-all", "--no-prompt", MAIN]],
  ...(RUNTIME.includes("/") ? ([["the binary", onRuntime([])]] as const) : []),
];

/** Message template with every character that some programs change when they read a `.env` file. */
const MESSAGE = 'Hi {{name}}, get $50 off with SAVE#1: https://shop.example/#offer\n\n"it\'s" for you';
const WRITTEN = `MESSAGE_TEMPLATE=\`${MESSAGE}\`\n`;

describe.each(RUNTIMES)("on %s", (_name, program) => {
  function openFolder() {
    const folder = temporaryFolder();
    const run = (args: readonly string[], env: Record<string, string> = {}) =>
      ended(
        Bun.spawn([...program, ...args], {
          cwd: folder.path,
          env: { PATH: process.env["PATH"] ?? "", ...RUNTIME_ENV, HOME: folder.path, DENO_DIR, ...env },
          stdio: ["ignore", "pipe", "pipe"],
        }),
      );
    return {
      run,
      write: (name: string, content: string | Uint8Array) => writeFileSync(folder.file(name), content),
      file: folder.file,
      [Symbol.dispose]: () => folder[Symbol.dispose](),
    };
  }

  test(".env is read literally, the environment overrides it, and .env.local is ignored", async () => {
    using folder = openFolder();
    folder.write("people.csv", "username,name,basis\nada_builds,Ada,opt_in\n");
    const log = { DATABASE_URL: `sqlite:${folder.file("log.sqlite")}` };
    expect(await captureCommandLine(["recipients", "import", folder.file("people.csv")], log)).toMatchObject({
      code: 0,
    });
    folder.write(".env", `DATABASE_URL=sqlite:./log.sqlite # a comment\n${WRITTEN}DAILY_LIMIT=7\n`);
    folder.write(".env.local", "DAILY_LIMIT=7000\nDATABASE_URL=sqlite:./other.sqlite\n");
    const preview = async (env?: Record<string, string>) => {
      const { code, out, err } = await folder.run(["outreach", "preview", "ada_builds", "--json"], env);
      expect([code, err]).toEqual([0, ""]);
      return (JSON.parse(out) as { variants: [{ text: string }] }).variants[0].text;
    };
    expect(await preview()).toBe(MESSAGE.replace("{{name}}", "Ada"));
    expect(await preview({ MESSAGE_TEMPLATE: "get $50 for SAVE#1" })).toBe("get $50 for SAVE#1");
    const checked = await folder.run(["doctor"]);
    expect(checked.code).toBe(0);
    expect(checked.out).toContain(".env.local is not read: move the settings of reachlog in it to .env.");
  });

  test("doctor and serve exit with 78 for an ambiguous .env, and create no log", async () => {
    using folder = openFolder();
    const faults: readonly (readonly [string, string | Uint8Array, string])[] = [
      ["doctor", "MESSAGE_TEMPLATE=Hi {{name}},\nhere it is\n", ".env line 2: neither NAME=value"],
      ["serve", Buffer.from("\ufeffPORT=3777\r\n", "utf16le"), "is not valid UTF-8 (line 1; perhaps UTF-16)"],
      ["serve", Buffer.from("# Gr\u00fc\u00dfe\n", "latin1"), "is not valid UTF-8 (line 1; perhaps Windows-1252)"],
    ];
    for (const [command, content, sentence] of faults) {
      folder.write(".env", content);
      const { code, err } = await folder.run([command]);
      expect([command, code, err]).toEqual([command, 78, expect.stringContaining(sentence)]);
    }
    expect(await folder.run(["settings"])).toMatchObject({ code: 0, err: "" });
    expect(await Bun.file(folder.file("data/reachlog.sqlite")).exists()).toBe(false);
  });

  test.each([
    ["a folder", "is a folder", (path: string) => mkdirSync(path)],
    ["a link to nothing", "does not exist", (path: string) => symlinkSync(join(path, "../none"), path)],
  ])("a .env that is %s is refused", async (_what, sentence, make) => {
    using folder = openFolder();
    make(folder.file(".env"));
    const { code, err } = await folder.run(["doctor"]);
    expect([code, err]).toEqual([78, expect.stringContaining(`${folder.file(".env")} ${sentence}`)]);
  });
});

test("a file named by Bun's --env-file replaces .env, under the same rules", async () => {
  using folder = temporaryFolder();
  writeFileSync(folder.file(".env"), "DAILY_LIMIT=7000\n");
  writeFileSync(folder.file("other.env"), "DAILY_LIMIT=$70\n");
  const run = (...flags: string[]) =>
    ended(
      Bun.spawn([process.execPath, ...flags, MAIN, "doctor"], {
        cwd: folder.path,
        env: { PATH: process.env["PATH"] ?? "", ...RUNTIME_ENV },
        stdio: ["ignore", "pipe", "pipe"],
      }),
    );
  expect(await run("--env-file=other.env")).toMatchObject({
    code: 78,
    err: expect.stringContaining('DAILY_LIMIT: "$70"'),
  });
  expect(await run("--env-file=none.env")).toMatchObject({ code: 78, err: expect.stringContaining("none.env") });
});
