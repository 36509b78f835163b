import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** One import, including type-only and dynamic ones; both paths are from the project's root. */
export interface Import {
  readonly from: string;
  readonly to: string;
}

const SPECIFIER = /(?:\bfrom\s*|\bimport\s*\(\s*|^\s*import\s+)["']([^"']+)["']/gm;

/** Packages within the project, with their entry files. */
const PACKAGE = new Map([
  ["eventstore-lite", "events/eventstore-lite/src/index.ts"],
  ["eventstore-lite/postgres", "events/eventstore-lite/src/postgres.ts"],
  ["eventstore-lite/segments", "events/eventstore-lite/src/segments.ts"],
  ["eventstore-lite/proof", "events/eventstore-lite/src/proof.ts"],
  ["eventstore-lite/testing", "events/eventstore-lite/src/testing.ts"],
  ["@reachlog/sandbox", "sandbox/sandbox.ts"],
  ["@reachlog/sandbox/demo", "sandbox/demo.ts"],
  ["@reachlog/sandbox/settings", "sandbox/service-settings.ts"],
]);

/** All TypeScript files of the project's own code, without tests. */
export function sourceFiles(root: string): readonly string[] {
  const globs = [
    "src/**/*.{ts,tsx}",
    "sandbox/**/*.{ts,tsx}",
    "projections/*.ts",
    "events/*.ts",
    "events/eventstore-lite/src/**/*.ts",
  ];
  return globs.flatMap((glob) => [...new Bun.Glob(glob).scanSync(root)]).sort();
}

/** The imports between these files. */
export function importsOf(root: string, files: readonly string[]): readonly Import[] {
  return files.flatMap((from) =>
    [...readFileSync(join(root, from), "utf8").matchAll(SPECIFIER)].flatMap(([, specifier = ""]) => {
      const entry = PACKAGE.get(specifier);
      if (entry !== undefined) return [{ from, to: entry }];
      if (!specifier.startsWith(".")) return [];
      const to = normalize(join(dirname(from), specifier));
      return /\.tsx?$/.test(to) && existsSync(join(root, to)) ? [{ from, to }] : [];
    }),
  );
}
