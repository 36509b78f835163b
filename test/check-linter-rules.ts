/**
 * Proves that the linter forbids what it should: each file below breaks one of its rules in a copy of the folders, and
 * the linter must report it. Otherwise a typing error could disable a rule unnoticed.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

interface Breach {
  readonly file: string;
  readonly code: string;
}

const breaches: readonly Breach[] = [
  { file: "events/breach.ts", code: 'import "../projections/message-totals.ts";' },
  {
    file: "events/breach-type.ts",
    code: 'import type { Stats } from "../projections/message-totals.ts";\nexport type S = Stats;',
  },
  { file: "events/breach-io.ts", code: 'import "node:fs";' },
  {
    file: "projections/breach.ts",
    code: 'import type { Config } from "../src/config/config.ts";\nexport type C = Config;',
  },
  { file: "projections/breach-clock.ts", code: "export const now = Date.now();" },
  { file: "projections/breach-io.ts", code: 'import "node:fs";' },
  { file: "events/eventstore-lite/src/breach.ts", code: 'import "../../account.ts";' },
  { file: "events/eventstore-lite/src/deep/breach.ts", code: 'import "../../../account.ts";' },
  { file: "src/outreach/breach.ts", code: 'import "elysia";' },
  { file: "src/delivery/breach-fetch.ts", code: 'export const answer = fetch("http://127.0.0.1/");' },
  { file: "src/http/breach-fetch.ts", code: 'export const answer = globalThis.fetch("http://127.0.0.1/");' },
  { file: "src/platform/breach-runtime.ts", code: "export const id = Bun.randomUUIDv7();" },
  { file: "src/platform/breach-global.ts", code: "export const id = globalThis.Bun;" },
  { file: "src/platform/breach-deno.ts", code: 'export const text = Deno.readTextFileSync("a");' },
  { file: "src/networks/safe-fetch.ts", code: "export const version = Deno.version;" },
  { file: "src/platform/breach-bun.ts", code: 'import { sql } from "bun";\nexport const query = sql;' },
  { file: "src/http/breach-bun.ts", code: 'import "bun:sqlite";' },
  { file: "src/log/breach-jsr.ts", code: 'import "jsr:@std/path";' },
  { file: "events/eventstore-lite/src/sqlite/breach-bun.ts", code: 'import "bun:sqlite";' },
  { file: "events/eventstore-lite/src/breach-rows.ts", code: "export const rows = (one) => [...one.iterate()];" },
  { file: "src/commands/breach.ts", code: 'import "@reachlog/sandbox";' },
  { file: "src/networks/breach.ts", code: 'import "msw";' },
  { file: "sandbox/breach.ts", code: 'import "../src/networks/x.ts";' },
  { file: "sandbox/control/breach-page.tsx", code: 'import "../../src/console/document.tsx";' },
  { file: "src/vault/breach.ts", code: 'import "eventstore-lite/testing";' },
  { file: "src/breach-test.ts", code: 'import "../test/run.ts";' },
];

const root = join(import.meta.dirname, "..");
const scratch = mkdtempSync(join(tmpdir(), "reachlog-walls-"));
try {
  cpSync(join(root, ".oxlintrc.json"), join(scratch, ".oxlintrc.json"));
  for (const { file, code } of breaches) {
    mkdirSync(dirname(join(scratch, file)), { recursive: true });
    writeFileSync(join(scratch, file), `${code}\n`);
  }
  const oxlint = join(root, "node_modules", ".bin", "oxlint");
  const lint = Bun.spawnSync([oxlint, "--format=json"], { cwd: scratch });
  const found = lint.stdout.toString();
  const standing = breaches.filter(({ file }) => reported(found, file));
  for (const { file, code } of breaches) {
    if (!standing.some((breach) => breach.file === file)) console.error(`no wall stops ${file}: ${code}`);
  }
  console.log(`${standing.length} of ${breaches.length} walls stand`);
  process.exitCode = standing.length === breaches.length ? 0 : 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

/** True if the linter refused this file because of an import or a call. */
function reported(output: string, file: string): boolean {
  const { diagnostics } = JSON.parse(output) as { diagnostics: { code: string; filename: string }[] };
  return diagnostics.some(({ code, filename }) => filename.endsWith(file) && /no-restricted/.test(code));
}
