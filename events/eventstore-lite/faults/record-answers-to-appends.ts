/** A record of what the callers of a store were told, kept by a process that outlives the store's. */
export interface Ledger {
  /** Records a line that `appendKey` (programs/keyed-events-and-append-loop.ts) printed; ignores any other line. */
  take(line: string): void;
  /** Idempotency keys of all appends that callers asked for. */
  readonly asked: ReadonlySet<string>;
  readonly acknowledged: ReadonlyMap<string, { readonly first: number; readonly last: number }>;
  /** Names of the errors with which the store refused appends. */
  readonly refusals: ReadonlySet<string>;
  /**
   * Number of appends that were acknowledged after any append had been reported as in doubt: from then on, the store
   * must acknowledge none.
   */
  readonly acknowledgedAfterDoubt: number;
  /**
   * Returns the idempotency keys of appends that were asked for and not acknowledged: in doubt, refused or never
   * answered.
   */
  unacknowledged(): string[];
}

export function createLedger(): Ledger {
  const asked = new Set<string>();
  const acknowledged = new Map<string, { first: number; last: number }>();
  const refusals = new Set<string>();
  let acknowledgedAfterDoubt = 0;

  return {
    asked,
    acknowledged,
    refusals,
    get acknowledgedAfterDoubt() {
      return acknowledgedAfterDoubt;
    },
    unacknowledged: () => [...asked].filter((key) => !acknowledged.has(key)),
    take(line) {
      const [sign, key = "", ...rest] = line.split(" ");
      if (sign === "?") asked.add(key);
      if (sign === "!") refusals.add(rest[0] ?? "");
      if (sign !== "+") return;
      acknowledged.set(key, { first: Number(rest[0]), last: Number(rest[1]) });
      if (refusals.has("AppendInDoubt")) acknowledgedAfterDoubt += 1;
    },
  };
}
