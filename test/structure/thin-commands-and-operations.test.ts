// These tests call the code directly.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { describeEndpoints } from "../../src/http/endpoints.ts";
import { loadOperations } from "../../src/operations.ts";

const ROOT = join(import.meta.dirname, "../..");

/**
 * Files next to the commands that are no commands: separate processes, and modules that commands share, such as a
 * terminal, a parser, files that an operator names.
 */
const ARE_NO_COMMANDS = /^src\/commands\/(?:shared|development|setup|mcp)\/|^src\/commands\/(?:serve|mcp)\.ts$/;

/**
 * Maximum number of lines of a command's file: a command only parses flags, calls one function of another folder and
 * words the answer.
 */
const LINES_MAX = 250;

/**
 * Names that a command's file may import from these modules. With them it can read what an operator names and parse its
 * notation.
 */
const TAKEN: Readonly<Record<string, readonly string[]>> = {
  "node:fs": ["existsSync", "readFileSync"],
  "node:net": ["isIP"],
  "node:os": ["availableParallelism"],
  "node:path": ["relative"],
  "@sinclair/typebox/value": ["Value"],
  "eventstore-lite/proof": ["formatPublicKey", "parsePublicKey", "parseVerifierKey", "SigningKeyRefused"],
};

/**
 * Our modules that a command's file must not import: they write the log, open secrets, call networks or assemble a
 * service.
 */
const ENGINES =
  /^src\/(?:vault\/|networks\/(?!hide-personal-codes\.ts)|log\/(?:decide-and-append|leases-and-roles|store-backends|log-file-paths)\.ts|service\/service\.ts)/;

const IMPORT = /^(import(?: type)?|\} from|export .* from)(?:\s*\{([^}]*)\} from)?\s*"([^"]+)";$/gm;

/**
 * Lists everything that a command's file must not have: imports of forbidden modules and names, calls that write to the
 * log or its snapshots, and too many lines.
 */
function enginesIn(file: string, text: string): readonly string[] {
  const statements = text.replaceAll(/^import(?: type)?\s*\{[^}]*\}/gm, (statement) =>
    statement.replaceAll(/\s+/g, " "),
  );
  const imported = [...statements.matchAll(IMPORT)].flatMap(([, kind, names = "", from = ""]) => {
    if (kind === "import type") return [];
    const values = names
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "" && !name.startsWith("type "));
    if (from.startsWith(".")) return ENGINES.test(normalize(join(file, "..", from))) && values.length > 0 ? [from] : [];
    return values.filter((name) => !(TAKEN[from] ?? []).includes(name)).map((name) => `${name} of ${from}`);
  });
  const called = [...text.matchAll(/\bcreateEventLog\(|\.(?:append|transact|snapshots|import)\b(?=[(.])/g)].map(
    ([call]) => call,
  );
  const lines = text.split("\n").length - 1;
  const long = lines > LINES_MAX ? [`${lines} lines`] : [];
  return [...imported, ...called, ...long].map((finding) => `${file}: ${finding}`);
}

const files = [...new Bun.Glob("src/commands/**/*.ts").scanSync(ROOT)].filter((file) => !ARE_NO_COMMANDS.test(file));

test("a command's file imports no engine", () => {
  expect(files.length).toBeGreaterThan(20);
  expect(files.flatMap((file) => enginesIn(file, readFileSync(join(ROOT, file), "utf8")))).toEqual([]);
});

test.each([
  ["writes a file", 'import { existsSync, writeFileSync } from "node:fs";', "writeFileSync of node:fs"],
  ["serves", 'import { createServer } from "node:http";', "createServer of node:http"],
  [
    "seals segments",
    'import { sealSegments } from "eventstore-lite/segments";',
    "sealSegments of eventstore-lite/segments",
  ],
  ["opens the vault", 'import {\n  type Vault,\n  openVault,\n} from "../vault/vault.ts";', "../vault/vault.ts"],
  ["calls an object store", 'import { createS3Client } from "../networks/s3/client.ts";', "../networks/s3/client.ts"],
  ["decides and appends", 'import { handle } from "../log/decide-and-append.ts";', "../log/decide-and-append.ts"],
  ["appends", "await eventLog.append(stream, events);", ".append"],
  ["stores states", "await store.snapshots.save(name, state);", ".snapshots"],
  ["is long", "\n".repeat(LINES_MAX + 1), `${LINES_MAX + 1} lines`],
])("a command that %s is reported", (_what, text, finding) => {
  expect(enginesIn("src/commands/some.ts", text)).toEqual([`src/commands/some.ts: ${finding}`]);
});

test("imports of types and of file reading are allowed", () => {
  const text = ['import type { Vault } from "../vault/vault.ts";', 'import { readFileSync } from "node:fs";'].join(
    "\n",
  );
  expect(enginesIn("src/commands/some.ts", text)).toEqual([]);
});

/** Handwritten commands by file and name, each with the reason why it is not an operation. */
const BY_HAND: Readonly<Record<string, readonly string[]>> = {
  "starts a process, or follows one": [
    "serve.ts serve",
    "witness.ts serve",
    "mcp.ts mcp",
    "outreach/watch.ts watch",
    "outreach/reconcile.ts reconcile",
    "audit.ts tail",
    "development/demo.ts demo",
    "development/sandbox.ts sandbox",
  ],
  "reads or writes files": [
    "audit/export-log.ts export",
    "audit/import-log.ts import",
    "links.ts import",
    "recipients.ts import",
    "recipients/evidence.ts evidence",
    "recipients/import-export-suppressions.ts export",
    "recipients/import-export-suppressions.ts import",
    "audit.ts head",
    "audit/prove-and-check-proofs.ts prove",
    "audit/prove-and-check-proofs.ts check",
    "audit/prove-and-check-proofs.ts consistency",
  ],
  "looks after the log, its keys or its backups while no service may run": [
    "backup-migrate-and-archive.ts backup",
    "backup-migrate-and-archive.ts migrate",
    "backup-migrate-and-archive.ts archive",
    "restore-and-clock-corrected.ts restore",
    "restore-and-clock-corrected.ts restored",
    "restore-and-clock-corrected.ts clock-corrected",
    "replay.ts replay",
    "audit/verify.ts verify",
    "master-key.ts rotate",
    "master-key.ts show",
  ],
  "sets up or examines this machine": [
    "setup/init.ts init",
    "setup/print-default-settings.ts settings",
    "completion.ts completion",
    "doctor.ts doctor",
    "upgrade-check.ts upgrade-check",
    "token.ts new",
    "token.ts remove",
  ],
  "asks the running service": ["ready.ts ready", "outreach.ts run", "deliveries-and-test-message.ts test"],
};

const COMMAND = /new Command\("([a-z-]+)"/g;

test("a command is an operation, or is listed here with the reason", () => {
  const made = [...new Bun.Glob("**/*.ts").scanSync(join(ROOT, "src/commands"))]
    .filter((file) => !file.startsWith("shared/"))
    .flatMap((file) => {
      const text = readFileSync(join(ROOT, "src/commands", file), "utf8");
      return [...text.matchAll(COMMAND)].map(([, name]) => `${file} ${name}`);
    });
  expect(made.toSorted()).toEqual(Object.values(BY_HAND).flat().toSorted());
});

test("an operation has exactly one endpoint, and no handwritten handler", async () => {
  const operations = await loadOperations();
  const ids = describeEndpoints().map(({ id }) => id);
  expect(operations.filter(({ id }) => ids.filter((one) => one === id).length !== 1)).toEqual([]);
  const byHand = [...new Bun.Glob("src/http/**/*.ts").scanSync(ROOT)].flatMap((file) =>
    [...readFileSync(join(ROOT, file), "utf8").matchAll(/\broute\(\s*"(\w+)"/g)].map(([, id]) => id),
  );
  expect(byHand.length).toBeGreaterThan(20);
  expect(operations.filter(({ id }) => byHand.includes(id))).toEqual([]);
});
