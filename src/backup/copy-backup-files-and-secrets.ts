import { createHash } from "node:crypto";
import { closeSync, existsSync, openSync, readSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../platform/service-error.ts";
import { type SecretContents, type Binding, type SecretPlace } from "../vault/secret-database.ts";
import { makeNewFile } from "../platform/new-file.ts";
import { withPath } from "../platform/describe-system-errors.ts";
import { type BackupFile, type Copied, NAMES } from "./manifest.ts";

const CHUNK_BYTES = 1_048_576;

export function measure(file: string): Copied {
  return readThrough(file, () => {});
}

/** Returns the size and the hash of the named files in the folder of a backup. */
export function measureAll<Name extends BackupFile>(folder: string, names: readonly Name[]): Record<Name, Copied> {
  const measured = names.map((name) => [name, measure(join(folder, NAMES[name]))]);
  return Object.fromEntries(measured) as Record<Name, Copied>;
}

/**
 * Copies a file of a backup to the new file `to`, durably. Throws a ServiceError (invalid, conflict), and creates no
 * file, if its size or hash is not the one in the manifest.
 */
export async function copyUnchanged(from: string, to: string, wanted: Copied): Promise<void> {
  if (!existsSync(from)) throw new ServiceError("invalid", `${from} is missing`);
  await makeNewFile(to, (descriptor) => {
    const found = readThrough(from, (chunk) => writeFileSync(descriptor, chunk));
    refuseOther(from, found, wanted);
  });
}

/**
 * Throws a ServiceError (invalid) that names the file, unless it exists with the size and hash that the manifest
 * records.
 */
export function refuseAltered(file: string, wanted: Copied): void {
  if (!existsSync(file)) throw new ServiceError("invalid", `${file} is missing`);
  refuseOther(file, measure(file), wanted);
}

function refuseOther(file: string, found: Copied, wanted: Copied): void {
  if (found.bytes === wanted.bytes && found.sha256 === wanted.sha256) return;
  throw new ServiceError("invalid", `${file} does not match the backup's manifest: it was altered or cut off`);
}

function readThrough(file: string, take: (chunk: Uint8Array) => void): Copied {
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  const descriptor = withPath(file, () => openSync(file, "r"));
  try {
    let bytes = 0;
    for (let read = readSync(descriptor, buffer); read > 0; read = readSync(descriptor, buffer)) {
      hash.update(buffer.subarray(0, read));
      take(buffer.subarray(0, read));
      bytes += read;
    }
    return { bytes, sha256: hash.digest("hex") };
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Copies all secrets of a vault or key store to another place, as of one moment and while processes use them, and binds
 * the copy to a log. Secrets in `to` stay if they are a newer copy; other ones cause a ServiceError (conflict).
 */
export async function copySecrets(
  from: SecretPlace,
  to: SecretPlace,
  binding: Binding,
  /** True for the names of secrets that the copy must not contain. */
  isLeftOut: (name: string) => boolean = () => false,
): Promise<void> {
  await using source = await from.open();
  await using target = await to.open();
  const leaveOut = ({ secrets, ...others }: SecretContents): SecretContents => {
    return { ...others, secrets: secrets.filter(({ name }) => !isLeftOut(name)) };
  };
  await target.fill(leaveOut(await source.contents()), binding);
}
