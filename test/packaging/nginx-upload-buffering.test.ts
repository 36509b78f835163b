// These tests call the code directly.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

interface Document {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly requestBody?: { readonly content?: object } }>>>
  >;
}

test("nginx does not buffer requests that upload lists of recipients", () => {
  const { paths } = JSON.parse(readFileSync(join(ROOT, "openapi.json"), "utf8")) as Document;
  const taking = Object.entries(paths).flatMap(([path, { post }]) =>
    "text/csv" in (post?.requestBody?.content ?? {}) ? [path] : [],
  );
  expect(taking).toEqual(expect.arrayContaining(["/social/recipients", "/social/suppressions"]));
  const nginx = readFileSync(join(ROOT, "deploy/nginx.conf"), "utf8");
  const unbuffered = [...nginx.matchAll(/location ~ (\S+) \{\s+proxy_request_buffering off;/g)].map(
    ([, pattern = ""]) => new RegExp(pattern),
  );
  for (const path of taking.flatMap((one) => [one, one.replace("/social/", "/console/"), `${one}/`])) {
    expect([path, unbuffered.some((pattern) => pattern.test(path))]).toEqual([path, true]);
  }
});
