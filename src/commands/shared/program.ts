/** What started this program, where it was not started from source: a bundle says so. */
declare const STARTED_AS: string | undefined;

/** How a shell starts this program again. */
export const PROGRAM = typeof STARTED_AS === "undefined" ? "npx -y bun@1.4.5 reachlog" : quoted(STARTED_AS);

function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
