import { openSqliteStore } from "eventstore-lite";
import { storeContract } from "eventstore-lite/contract";
import { newLogPath } from "./new-log.ts";

storeContract("SQLite", (options) => openSqliteStore({ file: newLogPath(), ...options }));
