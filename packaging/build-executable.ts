/** `bun run build [--target TARGET] [--out FILE]`: writes the program as one standalone executable. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { bundle, ROOT } from "./bundle.ts";
import { manPage } from "./man-page.ts";

const { values } = parseArgs({
  options: { target: { type: "string", default: `bun-${process.platform}-${process.arch}` }, out: { type: "string" } },
});
const outfile = values.out ?? join(ROOT, "dist/reachlog");
mkdirSync(dirname(outfile), { recursive: true });
const licences = await bundle({
  // Ignores Bun's settings in the current folder, which is not the program's. The program reads .env itself, by the
  // same rules on each runtime.
  compile: { target: values.target as Bun.Build.CompileTarget, outfile, autoloadBunfig: false, autoloadDotenv: false },
  startedAs: "process.execPath",
});
writeFileSync(`${outfile}.licenses.txt`, licences);
writeFileSync(`${outfile}.1`, manPage());
console.log(outfile);
