// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { describeEndpoints } from "../../../src/http/endpoints.ts";
import { documentedPath } from "../../fuzz/parse-openapi-operations.ts";
import { ask, openApp } from "../../harness/in-process/app.ts";

test("the API reference shows each operation for programs and runs no script", async () => {
  await using world = await openApp({ authPolicy: "strict" });
  const response = await ask(world.app, "/docs");
  expect([response.status, response.headers.get("content-security-policy")]).toEqual([
    200,
    expect.stringContaining("default-src 'none'"),
  ]);
  const page = await response.text();
  const shown = [...page.matchAll(/<details id="(\w+)"><summary><code>([A-Z]+) ([^<]+)<\/code>/g)];
  const programs = describeEndpoints().filter(({ tag }) => tag !== "console");
  expect(shown.map(([, id, method, path]) => `${id} ${method} ${path}`).sort()).toEqual(
    programs.map(({ method, path, id }) => `${id} ${method} ${documentedPath(path)}`).sort(),
  );
  expect(page).toContain("&quot;original_url&quot;: &quot;https://shop.example/?utm_source=dm&quot;");
  // Two answers share this schema. The page must print it in both.
  expect(page.match(/aria-label="\d+ of getReadiness"/g)).toHaveLength(2);
  expect(page.match(/<script|style=|javascript:/g)).toBeNull();
});
