/** Set by a bundle to the command that started it; undefined when started from source. */
declare const STARTED_AS: string | undefined;

/** How a shell starts this program again. */
export const PROGRAM = typeof STARTED_AS === "undefined" ? "npx -y bun@1.4.5 reachlog" : quote(STARTED_AS);

function quote(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
