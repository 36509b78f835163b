import { rmSync, writeFileSync } from "node:fs";

/** The demo's token is in it. */
const OWNER_ONLY = 0o600;

/**
 * Writes settings so that a shell and `bun --env-file` read them alike: one a line, each in single quotes. What a demo
 * before it left there is replaced.
 */
export function writeSettingsFile(file: string, settings: Readonly<Record<string, string>>): void {
  const lines = Object.entries(settings).map(([name, value]) => `${name}='${fit(name, value)}'\n`);
  rmSync(file, { force: true });
  writeFileSync(file, lines.join(""), { mode: OWNER_ONLY, flag: "wx" });
}

/** Neither of the two readers could be given a quote or a line break in a way that the other understands. */
function fit(name: string, value: string): string {
  if (/['\n\r]/.test(value)) throw new Error(`${name} holds a quote or a line break: it is to be a file of its own`);
  return value;
}
