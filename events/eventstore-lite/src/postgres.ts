/** The store on PostgreSQL, and the functions that bring a log to a server: import and restore. */
export { importPostgresLog } from "./postgres/import-log.ts";
export { openPostgresStore } from "./postgres/open.ts";
export {
  beginPostgresEpoch,
  identifyPostgresLog,
  isPostgresLogElsewhere,
  knownPostgresPlace,
  type PlaceKnown,
} from "./postgres/log-location.ts";
export { restorePostgresLog } from "./postgres/restore.ts";

// For an application that keeps tables next to a log on PostgreSQL: connections, migrations and errors as the log uses
// them.
export { urlsOf } from "./postgres/address.ts";
export { ANSWER_MS_MAX, openDatabase, type Database, type TransactionSql } from "./postgres/database.ts";
export { isLost, isRefused, isUnanswered, sqlState } from "./postgres/errors.ts";
export { migrate } from "./postgres/migrate.ts";
