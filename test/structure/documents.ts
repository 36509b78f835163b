import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** A Markdown file of the project: its path from the root and its text. */
export interface Document {
  readonly path: string;
  readonly text: string;
}

/** All Markdown files of the project, sorted by path. */
export function readDocuments(root: string): readonly Document[] {
  const found = [...new Bun.Glob("**/*.md").scanSync({ cwd: root, dot: true })];
  return found
    .filter((path) => !/(?:^|\/)(?:node_modules|dist|\.git)\//.test(path))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

const withoutCode = (text: string): string => text.replace(/^( *)```[\s\S]*?^\1```$/gm, "");

/** Counts words with a letter or a digit; table rules and arrows do not count. */
export const countWords = (text: string): number => (text.match(/\S*\w\S*/g) ?? []).length;

/** Blocks of prose. A list item is a block; headings, table rows and code blocks are not. */
export function paragraphsOf(text: string): readonly string[] {
  return withoutCode(text)
    .replace(/^(?:#|\s*\|).*$/gm, "")
    .split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )/)
    .map((paragraph) => paragraph.trim().replace(/\s*\n\s*/g, " "))
    .filter((paragraph) => paragraph !== "");
}

/** GitHub's anchor of a heading. */
const toAnchor = (heading: string): string =>
  heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replace(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");

const anchorsOf = (text: string): ReadonlySet<string> =>
  new Set([...withoutCode(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => toAnchor(heading)));

/** Relative links of a document whose file or heading does not exist. */
export function brokenLinks(root: string, { path, text }: Document): readonly string[] {
  const links = [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"/g)];
  return links
    .map(([, link, source]) => link ?? source ?? "")
    .filter((link) => !/^(?:https?|mailto):/.test(link))
    .filter((link) => {
      const [file = "", anchor] = link.split("#");
      const target = file === "" ? path : normalize(join(dirname(path), file));
      if (!existsSync(join(root, target))) return true;
      return anchor !== undefined && !anchorsOf(readFileSync(join(root, target), "utf8")).has(anchor);
    });
}

const FOLDERS = "clients|deploy|docs|events|packaging|projections|sandbox|src|test";

/**
 * Paths in backticks, from the root or the document's folder, that do not exist. Patterns (`*`, `<name>`) are ignored.
 */
export function brokenPaths(root: string, { path: document, text }: Document): readonly string[] {
  const named = [...withoutCode(text).matchAll(new RegExp(`\`((?:${FOLDERS})/[^\`\\s]*)[^\`]*\``, "g"))];
  const isThere = (path: string): boolean =>
    [root, join(root, dirname(document))].some((folder) => existsSync(join(folder, path)));
  return named.map(([, path = ""]) => path).filter((path) => !/[*<>{…]/.test(path) && !isThere(path));
}
