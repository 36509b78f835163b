/** The command that starts this program, set when the bundle is built. Undefined if the program runs from source. */
declare const STARTED_AS: string | undefined;

/** The words with which an operator can start this program again from a shell. */
export const PROGRAM = typeof STARTED_AS === "undefined" ? "npx -y bun@1.4.5 reachlog" : quote(STARTED_AS);

function quote(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
