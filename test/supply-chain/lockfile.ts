import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A package as pinned by the lockfile. */
export interface Locked {
  /**
   * Key of the package in the lockfile, mostly its name. If only one other package needs this version, the key begins
   * with that package's name.
   */
  readonly key: string;
  readonly name: string;
  readonly version: string;
  /** SHA-512 of the download in base64; undefined for a part of this repository. */
  readonly sha512: string | undefined;
  /** Source of the package's download; empty for the registry that the installing machine has configured. */
  readonly origin: string;
  /** Keys of the packages that this package depends on, required and optional ones. */
  readonly needs: readonly string[];
  /** True if the package is a build of another package for one kind of machine, which is installed only there. */
  readonly isBuild: boolean;
}

export interface Lockfile {
  readonly packages: ReadonlyMap<string, Locked>;
  /** Keys of the packages that the repository's parts name; `runtime` has those that the parts need at run time. */
  readonly direct: readonly string[];
  readonly runtime: readonly string[];
  /** Packages that may run code during installation. */
  readonly trusted: readonly string[];
}

type Names = Readonly<Record<string, string>>;
interface Wants {
  readonly devDependencies?: Names;
  readonly dependencies?: Names;
  readonly optionalDependencies?: Names;
  readonly peerDependencies?: Names;
}
interface Details extends Wants {
  readonly os?: string;
  readonly cpu?: string;
}
interface Raw {
  readonly workspaces: Readonly<Record<string, Wants & { readonly name: string }>>;
  readonly trustedDependencies?: readonly string[];
  readonly packages: Readonly<Record<string, readonly [id: string, origin?: string, details?: Details, hash?: string]>>;
}

const SHA512 = "sha512-";

export function readLockfile(root: string): Lockfile {
  const raw = Bun.JSONC.parse(readFileSync(join(root, "bun.lock"), "utf8")) as Raw;
  const keys = new Set(Object.keys(raw.packages));
  const packages = Object.entries(raw.packages).map(([key, entry]) => {
    const one = locked(key, entry, keys);
    const folder = /^workspace:(.*)$/.exec(one.version)?.[1];
    return folder === undefined ? one : { ...one, version: versionIn(join(root, folder)) };
  });
  return {
    packages: new Map(packages.map((one) => [one.key, one])),
    direct: Object.values(raw.workspaces).flatMap((part) =>
      Object.keys({ ...part.dependencies, ...part.devDependencies }),
    ),
    runtime: servedParts(raw).flatMap(({ dependencies = {} }) => Object.keys(dependencies)),
    trusted: raw.trustedDependencies ?? [],
  };
}

/** The service and the parts of the repository that it needs at run time, without the client, which runs elsewhere. */
function servedParts({ workspaces }: Raw): readonly Wants[] {
  const needed = workspaces[""]?.dependencies ?? {};
  return Object.entries(workspaces).flatMap(([folder, part]) => (folder === "" || part.name in needed ? [part] : []));
}

function locked(
  key: string,
  [id, origin = "", details = {}, hash]: Raw["packages"][string],
  keys: Set<string>,
): Locked {
  const at = id.lastIndexOf("@");
  const { dependencies, optionalDependencies, peerDependencies } = details;
  const names = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
  if (hash !== undefined && !hash.startsWith(SHA512)) throw new Error(`${id} is not pinned by a SHA-512`);
  return {
    key,
    name: id.slice(0, at),
    version: id.slice(at + 1),
    sha512: hash?.slice(SHA512.length),
    origin,
    needs: names.flatMap((name) => keyOf(name, key, keys) ?? []),
    isBuild: details.os !== undefined || details.cpu !== undefined,
  };
}

function versionIn(folder: string): string {
  return (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string }).version;
}

/**
 * Returns the lockfile's key for the version of `name` that the package `of` depends on: an own version if it has one,
 * otherwise the common one. Undefined for a peer dependency that is not installed.
 */
function keyOf(name: string, of: string, keys: ReadonlySet<string>): string | undefined {
  return [`${of}/${name}`, name].find((key) => keys.has(key));
}

/**
 * Returns the packages of `from` with all direct and indirect dependencies. Without `builds`, packages that are built
 * for one kind of machine are left out.
 */
export function closure(
  { packages }: Pick<Lockfile, "packages">,
  from: readonly string[],
  { builds }: { readonly builds: boolean },
): ReadonlySet<string> {
  const found = new Set<string>();
  const open = [...from];
  for (let key = open.pop(); key !== undefined; key = open.pop()) {
    const one = packages.get(key);
    if (one === undefined || found.has(key) || (one.isBuild && !builds)) continue;
    found.add(key);
    open.push(...one.needs);
  }
  return found;
}
