/** Paths of all files that belong to a log in a file; they are next to it. */
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
    /** The newest signed head of the log. */
    checkpoint: `${base}.checkpoint`,
    /** The newest head that a witness cosigned. */
    cosigned: `${base}.cosigned`,
    /** The record of the clock that the service used last. */
    clock: `${base}.clock`,
    /** The Ed25519 key that signs the checkpoint. */
    signingKey: `${base}.signing.pem`,
  };
}
