import { openSqliteStore } from "eventstore-lite";
import { storeContract } from "eventstore-lite/contract";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

storeContract("SQLite", (options) => openSqliteStore({ file: newLogPath(), ...options }));
