import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { storeContract } from "eventstore-lite/testing";
import { engines } from "../engines.ts";

for (const [name, open] of engines()) storeContract(name, { open, afterAll, beforeAll, describe, expect, fc, test });
