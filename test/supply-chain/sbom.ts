import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Enums, Models, Serialize, Spec } from "@cyclonedx/cyclonedx-library";
import { licencesOf } from "./licences.ts";
import { closure, readLockfile, type Locked } from "./lockfile.ts";

const { Application: APPLICATION, Library: LIBRARY } = Enums.ComponentType;

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
}

/**
 * The software bill of materials in CycloneDX 1.6 JSON, from the lockfile and the installed packages' licences. The
 * same lockfile gives the same bytes on every machine and at any time, so it contains no date.
 */
export function sbomOf(root: string): string {
  const lockfile = readLockfile(root);
  const licences = licencesOf(root, lockfile);
  const runtime = closure(lockfile, lockfile.runtime, { builds: true });
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;
  const bom = new Models.Bom();
  const main = componentOf(manifest, APPLICATION, manifest.license);
  // The service is not in any registry. Its purl would name another package that has the same name there, so it has
  // none.
  delete main.purl;
  main.description = manifest.description;
  bom.metadata.component = main;
  const components = new Map<string, Models.Component>();
  const ids = new Map<string, Models.Component>();
  for (const one of lockfile.packages.values()) {
    const { sha512 } = one;
    // Each of two packages may pin a version of a third one. If it is the same version, both share one component.
    const component = ids.get(`${one.name}@${one.version}`) ?? componentOf(one, LIBRARY, licences.get(one.key));
    ids.set(`${one.name}@${one.version}`, component);
    components.set(one.key, component);
    if (sha512 === undefined) delete component.purl;
    else component.hashes.set(Enums.HashAlgorithm["SHA-512"], Buffer.from(sha512, "base64").toString("hex"));
    if (runtime.has(one.key)) component.scope = Enums.ComponentScope.Required;
    component.scope ??= Enums.ComponentScope.Excluded;
  }
  for (const { key, needs } of lockfile.packages.values()) link(components.get(key), needs, components);
  link(main, lockfile.direct, components);
  for (const component of ids.values()) bom.components.add(component);
  bom.serialNumber = serialOf(root);
  return serialized(bom);
}

function componentOf({ name, version }: Pick<Locked, "name" | "version">, type: Enums.ComponentType, licence?: string) {
  const [scope, bare] = name.startsWith("@") ? (name.split("/") as [string, string]) : [undefined, name];
  const purl = `pkg:npm/${scope === undefined ? "" : `${encodeURIComponent(scope)}/`}${bare}@${encodeURIComponent(version)}`;
  const component = new Models.Component(type, bare, { version, purl, bomRef: purl });
  if (scope !== undefined) component.group = scope;
  if (licence !== undefined) {
    const isExpression = licence.startsWith("(");
    component.licenses.add(isExpression ? new Models.LicenseExpression(licence) : new Models.SpdxLicense(licence));
  }
  return component;
}

function link(
  from: Models.Component | undefined,
  keys: readonly string[],
  components: ReadonlyMap<string, Models.Component>,
): void {
  for (const key of keys) {
    const component = components.get(key);
    if (component !== undefined) from?.dependencies.add(component.bomRef);
  }
}

/**
 * Returns a UUID derived from the lockfile (RFC 9562, version 8), so that another lockfile gives another serial number.
 */
function serialOf(root: string): string {
  const hex = createHash("sha256")
    .update(readFileSync(join(root, "bun.lock")))
    .digest("hex");
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ];
  return `urn:uuid:${parts.join("-")}`;
}

function serialized(bom: Models.Bom): string {
  const factory = new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6);
  return `${new Serialize.JsonSerializer(factory).serialize(bom, { sortLists: true, space: 2 })}\n`;
}
