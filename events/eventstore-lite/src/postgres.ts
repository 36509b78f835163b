/** The store on PostgreSQL, and the functions that bring a log to a server: import and restore. */
export { importPostgresLog } from "./postgres/import-log.ts";
export { openPostgresStore } from "./postgres/open.ts";
export {
  beginPostgresEpoch,
  identifyPostgresLog,
  isPostgresLogElsewhere,
  knownPostgresPlace,
  type PlaceKnown,
} from "./postgres/detect-copied-or-replaced-log.ts";
export { restorePostgresLog } from "./postgres/restore-from-file.ts";

// For an application that keeps tables next to a log on PostgreSQL: connections, migrations and errors as the log uses
// them.
export { urlsOf } from "./postgres/parse-multi-host-url.ts";
export { ANSWER_MS_MAX, openDatabase, type Database, type TransactionSql } from "./postgres/database.ts";
export { isLost, isRefused, isUnanswered, sqlState } from "./postgres/classify-errors.ts";
export { migrate } from "./postgres/migrate.ts";
