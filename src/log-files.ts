/** Where everything that belongs to a log lies: beside it. */
export interface LogFiles {
  readonly log: string;
  readonly key: string;
  readonly vault: string;
}

export function logFiles(log: string): LogFiles {
  const base = log.replace(/\.(sqlite3?|db)$/, "");
  return { log, key: `${base}.key`, vault: `${base}.vault.sqlite` };
}
