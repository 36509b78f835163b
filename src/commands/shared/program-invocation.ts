/** The command that started a bundle, set in the bundle; undefined if started from source. */
declare const STARTED_AS: string | undefined;

/** How a shell starts this program again. */
export const PROGRAM = typeof STARTED_AS === "undefined" ? "npx -y bun@1.4.5 reachlog" : quote(STARTED_AS);

function quote(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
