import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { storeContract } from "eventstore-lite/contract";
import { engines } from "./engines.ts";

for (const [name, open] of engines()) storeContract(name, { open, afterAll, beforeAll, describe, expect, test });
