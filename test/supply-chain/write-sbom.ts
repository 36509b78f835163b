/** `bun run sbom [FILE]`: writes the bill of materials to FILE, or to stdout. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { sbomOf } from "./sbom.ts";

const [file] = process.argv.slice(2);
const sbom = sbomOf(join(import.meta.dirname, "../.."));
if (file === undefined) process.stdout.write(sbom);
else writeFileSync(file, sbom);
