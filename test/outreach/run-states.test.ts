// On no harness.
import { expect, test } from "bun:test";
import { Glob } from "bun";
import { join } from "node:path";
import { RUN_STATES } from "../../src/outreach/context.ts";

const SRC = join(import.meta.dirname, "../../src");

test("a run waits for all states that outreach and account read", async () => {
  const read = new Set<string>();
  for await (const file of new Glob("{outreach,account}/**/*.ts").scan(SRC)) {
    const source = await Bun.file(join(SRC, file)).text();
    for (const [, name] of source.matchAll(/\.state\("([a-z]+)"\)/g)) read.add(name!);
  }
  expect([...read].sort()).toEqual([...RUN_STATES].sort());
});
