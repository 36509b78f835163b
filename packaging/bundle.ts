import { build, Glob, type BuildConfig, type BunPlugin } from "bun";
import { readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { licencesOf } from "./licences.ts";

export const ROOT = join(import.meta.dirname, "..");
const MAIN = join(ROOT, "src/main.ts");

/** The modules that name files beside themselves. */
const OURS = ["src/**/*.ts", "sandbox/**/*.ts", "events/eventstore-lite/src/**/*.ts"].map(
  (pattern) => new Glob(pattern),
);

/** What a module starts or loads beside itself, and what it reads: a bundle that knows of it takes it along. */
const MODULE_BESIDE = /new URL\("(\.[^"]+)\.ts", import\.meta\.url\)/g;
const FILE_BESIDE = /new URL\((?:"(\.[^"]+\.(?!ts")[a-z]+)", import\.meta\.url|import\.meta\.resolve\("([^"]+)"\))\)/g;

/** Where a bundle goes: one file that runs by itself, or a folder of scripts for Bun. */
export interface Destination extends Pick<BuildConfig, "compile" | "outdir"> {
  /** What, of the process, is the path by which a shell starts the program. */
  readonly startedAs: "process.execPath" | "process.argv0";
}

/**
 * Bundles the program and all that it loads while it runs. Everything comes to lie in one folder, each file under its
 * own name, whether the folder is one of the disk or the one inside of a binary: so the same addresses hold in both.
 * Answers the licences of what was taken along. Rejects where two files have one name, or a module looks for a file in another way.
 */
export async function bundle({ startedAs, ...destination }: Destination): Promise<string> {
  const { metafile } = await build({
    ...destination,
    entrypoints: [MAIN, ...modulesBeside()],
    target: "bun",
    naming: "[name].[ext]",
    plugins: [keepBeside],
    define: { STARTED_AS: startedAs },
    // Elysia reads the text of handlers: names stay as they are written.
    minify: false,
    // What is imported while it runs is read by those alone that want it, and a binary finds everything compiled.
    splitting: true,
    bytecode: destination.compile !== undefined,
    format: "esm",
    metafile: true,
    throw: true,
  });
  return licencesOf(Object.keys(metafile?.inputs ?? {}).map((file) => resolve(file)));
}

/** Worker threads, and what they are told to load. */
function modulesBeside(): readonly string[] {
  const modules = OURS.flatMap((glob) => [...glob.scanSync({ cwd: ROOT, absolute: true })]);
  const named = modules.flatMap((module) =>
    [...readFileSync(module, "utf8").matchAll(MODULE_BESIDE)].map(([, path]) => resolve(dirname(module), `${path}.ts`)),
  );
  return [...new Set(named)].sort();
}

/** Lets modules find in the folder of the bundle what lay beside them in the source. */
const keepBeside: BunPlugin = {
  name: "keep beside",
  setup(builder) {
    builder.onLoad({ filter: /\.ts$/ }, ({ path }) =>
      OURS.some((glob) => glob.match(relative(ROOT, path)))
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
  // On the first line, so that the others keep their numbers.
  return imports.join("") + text;
}
