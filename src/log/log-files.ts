/** Where everything that belongs to a log lies: beside it. */
export interface LogFiles {
  readonly log: string;
  readonly key: string;
  readonly vault: string;
  /** The keys of personal data. */
  readonly keys: string;
  /** What the service last signed of the log's head. */
  readonly checkpoint: string;
  /** The newest that a witness cosigned. */
  readonly cosigned: string;
  /** The Ed25519 key that signs it. */
  readonly signingKey: string;
}

export function logFiles(log: string): LogFiles {
  const base = log.replace(/\.(sqlite3?|db)$/, "");
  return {
    log,
    key: `${base}.key`,
    vault: `${base}.vault.sqlite`,
    keys: `${base}.keys.sqlite`,
    checkpoint: `${base}.checkpoint`,
    cosigned: `${base}.cosigned`,
    signingKey: `${base}.signing.pem`,
  };
}
