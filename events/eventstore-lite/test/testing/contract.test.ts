import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { storeContract } from "eventstore-lite/testing";
import { archiving, engines } from "../engines.ts";

for (const [name, open] of engines()) {
  storeContract(name, { open, afterAll, beforeAll, describe, expect, fc, test });
  storeContract(`${name}, most of it archived`, {
    open: archiving(open),
    afterAll,
    beforeAll,
    describe,
    expect,
    fc,
    test,
  });
}
