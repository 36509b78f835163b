import { build, Glob, type BuildConfig, type BunPlugin } from "bun";
import { readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { licencesOf } from "./licences.ts";

export const ROOT = join(import.meta.dirname, "..");
const MAIN = join(ROOT, "src/main.ts");

/** Globs of the project's modules that may refer to neighbouring files by URL. */
const OURS = ["src/**/*.ts", "sandbox/**/*.ts", "events/eventstore-lite/src/**/*.ts"].map(
  (pattern) => new Glob(pattern),
);

/** Tools for tests and for the demo in a clone. They look for PostgreSQL's programs, which no bundle includes. */
const TOOLS_FOR_TESTS = new Glob("events/eventstore-lite/src/testing/**/*.ts");

/** Patterns of references to a module or a file by its relative URL. The bundle includes these modules and files. */
const MODULE_BESIDE = /new URL\("(\.[^"]+)\.ts", import\.meta\.url\)/g;
const FILE_BESIDE = /new URL\((?:"(\.[^"]+\.(?!ts")[a-z]+)", import\.meta\.url|import\.meta\.resolve\("([^"]+)"\))\)/g;

/** The target of a bundle: one standalone executable, or a folder of scripts for Bun. */
export interface Destination extends Pick<BuildConfig, "compile" | "outdir"> {
  /** The property of `process` with the path by which a shell starts the program. */
  readonly startedAs: "process.execPath" | "process.argv0";
}

/**
 * Bundles the program and the files that it loads at run time, and returns their licences. Rejects if two files have
 * the same name: all are put in one folder, so that relative URLs work on disk and inside a binary.
 */
export async function bundle({ startedAs, ...destination }: Destination): Promise<string> {
  const { metafile } = await build({
    ...destination,
    entrypoints: [MAIN, ...modulesBeside()],
    target: "bun",
    naming: "[name].[ext]",
    plugins: [keepBeside],
    define: { STARTED_AS: startedAs },
    // Elysia reads the source of handlers, so names must not change.
    minify: false,
    // Dynamically imported modules load only when needed, and a binary contains them compiled.
    splitting: true,
    bytecode: destination.compile !== undefined,
    format: "esm",
    metafile: true,
    throw: true,
  });
  return licencesOf(Object.keys(metafile?.inputs ?? {}).map((file) => resolve(file)));
}

/** Worker threads and other modules that are loaded by URL, except those of tools for tests. */
function modulesBeside(): readonly string[] {
  const modules = OURS.flatMap((glob) => [...glob.scanSync({ cwd: ROOT })])
    .filter((path) => !TOOLS_FOR_TESTS.match(path))
    .map((path) => join(ROOT, path));
  const named = modules.flatMap((module) =>
    [...readFileSync(module, "utf8").matchAll(MODULE_BESIDE)].map(([, path]) => resolve(dirname(module), `${path}.ts`)),
  );
  return [...new Set(named)].sort();
}

/**
 * Rewrites references to neighbouring files, which are in the bundle's folder. Throws if a module refers to a file in
 * another way.
 */
const keepBeside: BunPlugin = {
  name: "keep beside",
  setup(builder) {
    builder.onLoad({ filter: /\.ts$/ }, ({ path }) =>
      OURS.some((glob) => glob.match(relative(ROOT, path))) && !TOOLS_FOR_TESTS.match(relative(ROOT, path))
        ? { contents: besideBundle(readFileSync(path, "utf8"), path), loader: "ts" }
        : undefined,
    );
  },
};

function besideBundle(source: string, path: string): string {
  if (source.replaceAll(MODULE_BESIDE, "").replaceAll(FILE_BESIDE, "").includes("import.meta")) {
    throw new Error(
      `${path}: a file beside it is to be named as new URL("./file", import.meta.url), or it is not bundled`,
    );
  }
  const imports: string[] = [];
  const text = source
    .replaceAll(FILE_BESIDE, (_, file?: string, specifier?: string) => {
      const name = `fileBeside${imports.length}`;
      imports.push(`import ${name} from ${JSON.stringify(file ?? specifier)} with { type: "file" };`);
      return `new URL(${name}, import.meta.url)`;
    })
    .replaceAll(MODULE_BESIDE, (_, module: string) => `new URL("./${basename(module)}.js", import.meta.url)`);
  // Added to the first line, so that the line numbers stay the same.
  return imports.join("") + text;
}
