import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { storeContract, type OpenStore } from "eventstore-lite/contract";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();
const open: OpenStore = (options) => openSqliteStore({ file: newLogPath(), ...options });

storeContract("SQLite", { open, afterAll, beforeAll, describe, expect, test });
