import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { storeContract } from "eventstore-lite/testing";
import { archiving, engines } from "../engines.ts";

for (const [name, openEngine] of engines({ writerThread: false })) {
  const open = archiving(openEngine);
  storeContract(`${name}, most of it archived`, { open, afterAll, beforeAll, describe, expect, fc, test });
}
