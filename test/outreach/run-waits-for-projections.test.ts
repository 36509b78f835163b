// These tests call the code directly.
import { expect, test } from "bun:test";
import { Glob } from "bun";
import { join } from "node:path";
import { RUN_STATES } from "../../src/outreach/run-context.ts";

const SRC = join(import.meta.dirname, "../../src");

/**
 * Source files that this test skips, because a run can send messages without the states that they read. They read
 * states for console pages, team reports, dry runs and the stream of the network's signals.
 */
const READINGS =
  /attention\/|report\/|signals\/|run-and-dry-run-page-data|estimate-next-run|record-dry-run-recipients|read-campaigns/;

test("a run waits for all states that outreach and account read", async () => {
  const read = new Set<string>();
  for await (const file of new Glob("{outreach,account}/**/*.ts").scan(SRC)) {
    if (READINGS.test(file)) continue;
    const source = await Bun.file(join(SRC, file)).text();
    for (const [, name] of source.matchAll(/\.state\("([a-z]+)"\)/g)) read.add(name!);
  }
  expect([...read].sort()).toEqual([...RUN_STATES].sort());
});
