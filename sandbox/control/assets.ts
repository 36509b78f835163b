import { readFileSync } from "node:fs";

interface Asset {
  /** Media type of the file. All files are text in UTF-8. */
  readonly type: string;
  readonly body: string;
}

/** All files that the sandbox's pages load. The pages load nothing from other sites. */
const ASSETS: Readonly<Record<string, Asset>> = {
  "/sandbox.css": { type: "text/css", body: textOf(new URL("./sandbox.css", import.meta.url)) },
  "/sandbox.js": { type: "text/javascript", body: textOf(new URL("./refresh-pages.js", import.meta.url)) },
  "/idiomorph.js": {
    type: "text/javascript",
    body: textOf(new URL(import.meta.resolve("idiomorph/dist/idiomorph.esm.js"))),
  },
};

function textOf(file: URL): string {
  return readFileSync(file, "utf8");
}

/** Returns the answer with the file; undefined if there is none at this path. */
export function assetAnswer(path: string): Response | undefined {
  const asset = Object.hasOwn(ASSETS, path) ? ASSETS[path] : undefined;
  if (asset === undefined) return undefined;
  return new Response(asset.body, {
    headers: {
      "content-type": `${asset.type}; charset=utf-8`,
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    },
  });
}
