// For an application's tables next to a log on PostgreSQL: the same connections, migrations and errors.
export { urlsOf } from "./postgres/address.ts";
export { ANSWER_MS_MAX, openDatabase, type Database, type TransactionSql } from "./postgres/database.ts";
export { isLost, isRefused, isUnanswered, sqlState } from "./postgres/errors.ts";
export { migrate } from "./postgres/migrate.ts";
