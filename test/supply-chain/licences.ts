import { readFileSync } from "node:fs";
import { join } from "node:path";
import { closure, type Locked, type Lockfile } from "./lockfile.ts";

/** Licences that packages may have; each permits use, modification and distribution together with MIT code. */
export const ALLOWED: ReadonlySet<string> = new Set([
  "MIT",
  "ISC",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "Apache-2.0",
  "0BSD",
  "Unlicense",
  "(MIT OR CC0-1.0)",
  // The conditions of this licence only concern projects that change the package's files. Ours does not.
  "MPL-2.0",
]);

/**
 * Returns the licence that each package declares. A build of a package for one kind of machine gets the package's
 * licence, because only such machines install the build. Other packages that only builds need are left out.
 */
export function licencesOf(root: string, { packages, direct }: Lockfile): ReadonlyMap<string, string> {
  const everywhere = closure({ packages }, direct, { builds: false });
  const licences = new Map<string, string>();
  for (const key of everywhere) {
    const one = packages.get(key);
    if (one === undefined) continue;
    const licence = licenceOf(root, one);
    licences.set(key, licence);
    for (const need of one.needs) if (packages.get(need)?.isBuild === true) licences.set(need, licence);
  }
  return licences;
}

function licenceOf(root: string, { name, version, sha512 }: Locked): string {
  const manifest = sha512 === undefined ? join(root, "node_modules", name) : installed(root, name, version);
  const { license } = JSON.parse(readFileSync(join(manifest, "package.json"), "utf8")) as { license?: unknown };
  if (typeof license !== "string") throw new Error(`${name} ${version} tells no licence`);
  return license;
}

/** Returns the folder in which a package is installed; its name may end in a hash of the installation's context. */
function installed(root: string, name: string, version: string): string {
  const store = join(root, "node_modules/.bun");
  const folder = `${name.replace("/", "+")}@${version}`;
  const [found] = [...new Bun.Glob(`${folder}{,+*}`).scanSync({ cwd: store, onlyFiles: false })];
  if (found === undefined) throw new Error(`${name} ${version} is not installed: run bun install --frozen-lockfile`);
  return join(store, found, "node_modules", name);
}
