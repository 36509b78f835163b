import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Maximum number of names, values and types together, that one entry of a package may export. */
export const NAMES_MAX = 30;

/** An entry of a package: the name by which programs import it, and the file behind it. */
export interface Face {
  readonly entry: string;
  readonly file: string;
}

/** The entries of the packages in these folders, as each `package.json` lists them. */
export function readFaces(root: string, folders: readonly string[]): readonly Face[] {
  return folders.flatMap((folder) => {
    const { name, exports } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as {
      readonly name: string;
      readonly exports: string | Readonly<Record<string, string>>;
    };
    const entries = typeof exports === "string" ? { ".": exports } : exports;
    return Object.entries(entries).map(([entry, file]) => ({ entry: join(name, entry), file: join(folder, file) }));
  });
}

const LISTED = /^export\s+(?:type\s+)?\{([^}]*)\}/gm;
const ALL_OF = /^export\s+(?:type\s+)?\*\s+from\s+"([^"]+)"/gm;
const NAMESPACE = /^export\s+(?:type\s+)?\*\s+as\s+(\w+)/gm;
const DECLARED =
  /^export\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:function\*?|const|let|enum|interface|type|class)\s+(\w+)/gm;
const DEFAULT = /^export\s+(default)\b/gm;

/** The names that a module exports, values and types, also those that it passes on from another module. */
export function exportedNames(file: string): readonly string[] {
  const text = readFileSync(file, "utf8");
  const all = (pattern: RegExp): readonly string[] => [...text.matchAll(pattern)].map(([, found = ""]) => found);
  const listed = all(LISTED)
    .flatMap((names) => names.split(","))
    .map((name) => name.trim().split(/\s+/).at(-1) ?? "")
    .filter((name) => name !== "");
  const passedOn = all(ALL_OF).flatMap((path) => exportedNames(join(dirname(file), path)));
  return [...new Set([...listed, ...passedOn, ...all(NAMESPACE), ...all(DECLARED), ...all(DEFAULT)])];
}

/**
 * Returns a sentence for each entry of a package's `exports` whose path is no existing file, or whose file exports more
 * than {@link NAMES_MAX} names.
 */
export function findFaults(root: string, faces: readonly Face[]): readonly string[] {
  return faces.flatMap(({ entry, file }) => {
    const path = join(root, file);
    if (!existsSync(path)) return [`${entry} is not one file: ${file}`];
    const names = /\.tsx?$/.test(file) ? exportedNames(path) : [];
    return names.length > NAMES_MAX ? [`${entry} exports ${names.length} names`] : [];
  });
}
