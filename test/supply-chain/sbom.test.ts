// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import Ajv from "ajv";
import addFormats from "ajv-formats";
import { ALLOWED, licencesOf } from "./licences.ts";
import { closure, readLockfile } from "./lockfile.ts";
import { sbomOf } from "./sbom.ts";

const ROOT = join(import.meta.dirname, "../..");

interface Sbom {
  readonly components: readonly {
    readonly name: string;
    readonly version: string;
    readonly scope: string;
    readonly purl?: string;
    readonly hashes?: readonly { readonly content: string }[];
    readonly "bom-ref": string;
  }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
}

const parsed = (): Sbom => JSON.parse(sbomOf(ROOT)) as Sbom;

/** A validator for the schema of CycloneDX 1.6, which the library contains, with the schemas that it refers to. */
function schemaCheck() {
  const library = dirname(fileURLToPath(import.meta.resolve("@cyclonedx/cyclonedx-library/package.json")));
  const schema = (name: string) =>
    JSON.parse(readFileSync(join(library, `res/schema/${name}.SNAPSHOT.schema.json`), "utf8")) as object;
  const ajv = new Ajv({ strict: false });
  addFormats(ajv);
  // The library does not know these two formats. They do not occur in our bill of materials, so any text is accepted
  // for them.
  for (const format of ["iri-reference", "idn-email"]) ajv.addFormat(format, true);
  const base = "http://cyclonedx.org/schema/";
  for (const name of ["spdx", "jsf-0.82", "cryptography-defs"]) {
    ajv.addSchema({ ...schema(name), $id: `${base}${name}.SNAPSHOT.schema.json` });
  }
  return ajv.compile(schema("bom-1.6"));
}

describe("the bill of materials", () => {
  test("is valid CycloneDX 1.6", () => {
    const check = schemaCheck();
    const bill = JSON.parse(sbomOf(ROOT)) as object;
    expect([check(bill), check.errors]).toEqual([true, null]);
    expect(check({ ...bill, bomFormat: "another" })).toBe(false);
  });

  test("names every package of the lockfile once, with its hash", () => {
    const { components } = parsed();
    const pinned = [...readLockfile(ROOT).packages.values()];
    const names = components.map(({ "bom-ref": ref }) => ref);
    expect(new Set(names).size).toBe(names.length);
    expect(names.length).toBe(new Set(pinned.map(({ name, version }) => `${name}@${version}`)).size);
    for (const { name, version, sha512 } of pinned) {
      const found = components.find((one) => one.version === version && name.endsWith(one.name) && (one.purl ?? ""));
      const hex = sha512 && Buffer.from(sha512, "base64").toString("hex");
      expect([name, found?.hashes?.[0]?.content]).toEqual([name, hex]);
    }
  });

  test("separates runtime packages from development packages and names dependencies", () => {
    const { components, dependencies } = parsed();
    const scopeOf = (name: string) => components.find((one) => one.name === name)?.scope;
    expect(["elysia", "typebox", "cookie", "csv-parse"].map(scopeOf)).toEqual(Array(4).fill("required"));
    expect(["msw", "oxlint", "ajv", "yargs"].map(scopeOf)).toEqual(Array(4).fill("excluded"));
    const needs = dependencies.find(({ ref }) => ref.startsWith("pkg:npm/cliui@"))?.dependsOn;
    expect(needs).toContain("pkg:npm/string-width@7.2.0");
  });

  test("has the same bytes for the same lockfile in another folder", () => {
    const scratch = mkdtempSync(join(tmpdir(), "reachlog-sbom-"));
    try {
      for (const file of [
        "package.json",
        "bun.lock",
        "events/eventstore-lite/package.json",
        "clients/typescript/package.json",
        "sandbox/package.json",
      ]) {
        cpSync(join(ROOT, file), join(scratch, file));
      }
      symlinkSync(join(ROOT, "node_modules"), join(scratch, "node_modules"));
      expect(sbomOf(scratch)).toBe(sbomOf(ROOT));
    } finally {
      rmSync(scratch, { recursive: true });
    }
  });
});

/** Parts of this repository. */
const OURS = new Set(["eventstore-lite", "@reachlog/client", "@reachlog/sandbox"]);

describe("an installed package", () => {
  test("has an allowed licence", () => {
    const unfit = [...licencesOf(ROOT, readLockfile(ROOT))].filter(([, licence]) => !ALLOWED.has(licence));
    expect(unfit).toEqual([]);
  });

  test("is pinned by a SHA-512 and names no origin", () => {
    for (const { name, sha512, origin } of readLockfile(ROOT).packages.values()) {
      expect([name, origin]).toEqual([name, ""]);
      if (!OURS.has(name)) expect(Buffer.from(sha512 ?? "", "base64")).toHaveLength(64);
    }
  });

  test("runs no code when it is installed", () => {
    const { trustedDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
      trustedDependencies?: unknown;
    };
    // The list must exist, even though it is empty. Without it, the runtime would use its own list of about a hundred
    // packages.
    expect([trustedDependencies, readLockfile(ROOT).trusted]).toEqual([[], []]);
  });

  test("is at least a week old and pinned to an exact version", () => {
    const { install } = Bun.TOML.parse(readFileSync(join(ROOT, "bunfig.toml"), "utf8")) as {
      install: Record<string, unknown>;
    };
    expect(install).toMatchObject({ minimumReleaseAge: 7 * 86_400, exact: true });
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Record<
      string,
      Record<string, string>
    >;
    const loose = Object.entries({ ...dependencies, ...devDependencies }).filter(
      ([, version]) => !/^(?:\d+\.\d+\.\d+|workspace:\*)$/.test(version),
    );
    expect(loose).toEqual([]);
  });

  test("is one of at most 53 at runtime", () => {
    const lockfile = readLockfile(ROOT);
    const runtime = closure(lockfile, lockfile.runtime, { builds: true });
    // Each package could read all secrets, so there should be few. docs/decisions/82-libraries.md has a reason for each
    // one; most of them need no other packages.
    expect(runtime.size).toBeLessThanOrEqual(53);
  });
});
