import { writeFileSync } from "node:fs";
import { join } from "node:path";

interface Manifest {
  readonly name: string;
  readonly version: string;
}

/** Writes a package's manifest to its folder, packs it into `out`, and prints the path of the file. */
export function packFolder(folder: string, manifest: Manifest, out: string): void {
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  const packing = Bun.spawnSync([process.execPath, "pm", "pack", "--quiet", "--destination", out], { cwd: folder });
  if (packing.exitCode !== 0) throw new Error(packing.stderr.toString());
  console.log(join(out, `${manifest.name}-${manifest.version}.tgz`));
}
