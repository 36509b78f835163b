// Opens the log named by its argument, and dies after the new table is created and before its first row is inserted.
import { writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { openWriter } from "../src/sqlite/connections.ts";
import { pragma } from "../src/sqlite/connection-settings.ts";

const STDOUT = 1;

const prepare = DatabaseSync.prototype.prepare;
DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql: string) {
  if (sql.startsWith("INSERT INTO epochs")) {
    DatabaseSync.prototype.prepare = prepare;
    writeSync(STDOUT, `format ${String(pragma(this, "user_version"))}\n`);
    process.kill(process.pid, "SIGKILL");
  }
  return prepare.call(this, sql);
};
const [file = ""] = process.argv.slice(2);
openWriter(file, Number.MAX_SAFE_INTEGER);
