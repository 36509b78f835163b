import { importsOf } from "./imports.ts";

/**
 * Harnesses from the most realistic to the least. The harness of a test is the first of them that it imports, directly
 * or not.
 */
const HARNESSES = [
  ["the browser harness", /^test\/harness\/browser\.ts$/],
  ["the process harness", /^test\/harness\/(?:process|demo)\.ts$/],
  ["the in-process harness", /^test\/harness\/in-process\//],
] as const;

/** The first line of each test file says how its tests run. */
export const FIRST_LINES: Readonly<Record<string, string>> = {
  "the browser harness": "// These tests operate pages in a browser.",
  "the process harness": "// These tests start the service or commands as processes.",
  "the in-process harness": "// These tests run parts of the service inside the test process.",
  "no harness": "// These tests call the code directly.",
};

/** Harnesses that start processes: their tests run modules that they do not import. */
export const STARTING_PROCESSES: ReadonlySet<string> = new Set(["the process harness", "the browser harness"]);

export function testFiles(root: string): readonly string[] {
  return [...new Bun.Glob("test/**/*.test.ts").scanSync(root)].sort();
}

/** Maps a test file to its harness, by its direct and indirect imports. */
export function harnessesOf(root: string): ReadonlyMap<string, string> {
  const files = [...new Bun.Glob("test/**/*.ts").scanSync(root)];
  const imported = Map.groupBy(importsOf(root, files), ({ from }) => from);
  const reached = (file: string): ReadonlySet<string> => {
    const seen = new Set([file]);
    for (const one of seen) for (const { to } of imported.get(one) ?? []) seen.add(to);
    return seen;
  };
  return new Map(
    testFiles(root).map((file) => {
      const all = [...reached(file)];
      const [name = "no harness"] = HARNESSES.find(([, path]) => all.some((one) => path.test(one))) ?? [];
      return [file, name];
    }),
  );
}
