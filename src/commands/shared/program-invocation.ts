/** The command that started this program, set while the bundle is built; undefined if the program runs from source. */
declare const STARTED_AS: string | undefined;

/** The words by which a shell starts this program again. */
export const PROGRAM = typeof STARTED_AS === "undefined" ? "npx -y bun@1.4.5 reachlog" : quote(STARTED_AS);

function quote(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
