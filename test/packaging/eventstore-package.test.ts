// These tests call the code directly.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { denoProgram } from "../harness/bun-deno-or-binary.ts";
import { temporaryFolder, type TemporaryFolder } from "../harness/temporary-folder.ts";

const ROOT = join(import.meta.dirname, "../..");
const SOURCE = join(ROOT, "events/eventstore-lite");

/** A project with the packed package installed, and nothing of the repository. */
let project: TemporaryFolder;
beforeAll(() => {
  project = temporaryFolder();
  succeed(process.execPath, join(ROOT, "packaging/pack-eventstore.ts"), "--out", project.path);
  const [archive = ""] = [...new Bun.Glob("*.tgz").scanSync(project.path)];
  const installed = project.file("node_modules/eventstore-lite");
  mkdirSync(installed, { recursive: true });
  succeed("tar", "-xzf", project.file(archive), "--strip-components=1", "-C", installed);
  for (const name of ["postgres", "fast-check"]) {
    const at = name === "postgres" ? SOURCE : ROOT;
    symlinkSync(
      dirname(createRequire(join(at, "package.json")).resolve(`${name}/package.json`)),
      project.file(`node_modules/${name}`),
    );
  }
  writeFileSync(project.file("package.json"), '{ "type": "module" }');
});
afterAll(() => project[Symbol.dispose]());

function succeed(...command: readonly string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], { cwd: project.path });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr.toString()}${stdout.toString()}`);
  return stdout.toString();
}

const example = (): string => /```ts\n(.*?)```/s.exec(readFileSync(join(SOURCE, "README.md"), "utf8"))?.[1] ?? "";

describe("the event store's package", () => {
  test("contains only JavaScript and types, without references to a test runner", () => {
    const files = [...new Bun.Glob("node_modules/eventstore-lite/**/*").scanSync(project.path)];
    const modules = files.filter((file) => /\.(?:js|d\.ts)$/.test(file));
    expect(files.filter((file) => /(?<!\.d)\.ts$|\/(?:test|bench)\//.test(file))).toEqual([]);
    expect(modules.length).toBeGreaterThan(100);
    for (const file of modules) {
      const text = readFileSync(project.file(file), "utf8");
      const named = [...text.matchAll(/(?:from |import\(|new URL\()"(\.[^"]+)"/g)].map(([, path = ""]) =>
        join(dirname(file), path),
      );
      const missing = named.filter((path) => !files.includes(path));
      expect([file, missing]).toEqual([file, []]);
      expect([file, /from "(?:bun|vitest)/.test(text)]).toEqual([file, false]);
    }
  });

  test.each([
    ["bun", () => [process.execPath]],
    ["deno", () => [denoProgram(), "run", "--allow-all", "--no-prompt"]],
  ])("runs the README's example on %s", (name, program) => {
    writeFileSync(project.file(`${name}.js`), example().replace("./data/", `./${name}/`));
    expect(succeed(...program(), `${name}.js`)).toBe("1 ItemAdded true\ntrue\n");
  });

  test("provides types to a program that compiles against it", () => {
    writeFileSync(
      project.file("types.ts"),
      `${example()}
import { migrate } from "eventstore-lite/postgres";
import { openCheckpoint } from "eventstore-lite/proof";
import { openSegment } from "eventstore-lite/segments";
import { storeContract } from "eventstore-lite/testing";
const position: number = (await store.head()).position;
// @ts-expect-error -- a position is no text
const text: string = (await store.head()).position;
export { migrate, openCheckpoint, openSegment, position, storeContract, text };
`,
    );
    symlinkSync(
      dirname(createRequire(join(ROOT, "package.json")).resolve("bun-types/package.json")),
      project.file("node_modules/bun-types"),
    );
    const options = {
      strict: true,
      target: "ESNext",
      module: "nodenext",
      noEmit: true,
      skipLibCheck: false,
      types: ["bun-types"],
    };
    writeFileSync(project.file("tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["types.ts"] }));
    succeed(process.execPath, "check", "--no-script", "-p", "tsconfig.json");
  });

  test("has the same description for JSR and npm", () => {
    const { exports, version, dependencies } = JSON.parse(readFileSync(join(SOURCE, "package.json"), "utf8"));
    const described = JSON.parse(readFileSync(join(SOURCE, "jsr.json"), "utf8"));
    const published = Object.entries(exports).filter(([, path]) => String(path).startsWith("./src/"));
    expect(described).toMatchObject({ version, exports: Object.fromEntries(published) });
    const root = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    expect(described.imports).toEqual({
      "fast-check": `npm:fast-check@${root.devDependencies["fast-check"]}`,
      postgres: `npm:postgres@${dependencies.postgres}`,
    });
    expect(
      Object.keys(JSON.parse(readFileSync(project.file("node_modules/eventstore-lite/package.json"), "utf8")).exports),
    ).toEqual(published.map(([entry]) => entry));
  });
});
