/** `bun run pack [--out FOLDER]`: writes the npm package, which includes Bun and needs nothing else. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import manifest from "../package.json" with { type: "json" };
import { bundle, ROOT } from "./bundle.ts";
import { manPage } from "./man-page.ts";
import { packFolder } from "./write-manifest-and-pack-folder.ts";

const { values } = parseArgs({ options: { out: { type: "string", default: join(ROOT, "dist") } } });
const folder = join(values.out, "npm");
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });

const licences = await bundle({ outdir: folder, startedAs: "process.argv0" });
writeFileSync(join(folder, "THIRD-PARTY-LICENSES.txt"), licences);
writeFileSync(join(folder, "reachlog.1"), manPage());
cpSync(join(import.meta.dirname, "reachlog.js"), join(folder, "reachlog.js"));
for (const document of ["README.md", "LICENSE"]) cpSync(join(ROOT, document), join(folder, document));

const { name, version, description, license, type, devDependencies } = manifest;
const packed = {
  name,
  version,
  description,
  license,
  type,
  bin: { reachlog: "reachlog.js" },
  man: "./reachlog.1",
  engines: { node: ">=20.11" },
  // The version that the service was checked against.
  dependencies: { bun: devDependencies["bun-types"] },
};
packFolder(folder, packed, values.out);
