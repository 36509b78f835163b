import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openPostgresStore } from "eventstore-lite";
import { storeContract, type OpenStore } from "eventstore-lite/contract";
import { newDatabase } from "./server.ts";

const url = newDatabase();
let schemas = 0;
const open: OpenStore = async (options) =>
  openPostgresStore({ url: await url, schema: `log ${(schemas += 1)}`, ...options });

storeContract("PostgreSQL", { open, afterAll, beforeAll, describe, expect, test });
