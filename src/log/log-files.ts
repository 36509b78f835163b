/** Where everything that belongs to a log lies: beside it. */
export type LogFiles = ReturnType<typeof logFiles>;

export function logFiles(log: string) {
  const base = log.replace(/\.(sqlite3?|db)$/, "");
  return {
    log,
    key: `${base}.key`,
    vault: `${base}.vault.sqlite`,
    /** The keys of personal data. */
    keys: `${base}.keys.sqlite`,
    /** The folder of archived events. */
    segments: `${base}.segments`,
    /** What the service last signed of the log's head. */
    checkpoint: `${base}.checkpoint`,
    /** The newest that a witness cosigned. */
    cosigned: `${base}.cosigned`,
    /** The clock that the service went by last. */
    clock: `${base}.clock`,
    /** The Ed25519 key that signs it. */
    signingKey: `${base}.signing.pem`,
  };
}
