/** The stream was not at the expected version; `actual` is where it stands. */
export class VersionConflict extends Error {
  override readonly name = "VersionConflict";
  readonly stream: string;
  readonly expected: string | number;
  readonly actual: number;
  constructor(stream: string, expected: string | number, actual: number) {
    super(`stream ${stream}: expected version ${expected}, found ${actual}`);
    this.stream = stream;
    this.expected = expected;
    this.actual = actual;
  }
}

/** The fence's lease expired or was taken by another holder: nothing was appended. */
export class LeaseLost extends Error {
  override readonly name = "LeaseLost";
  constructor(lease: string) {
    super(`lease ${lease} is no longer held`);
  }
}

/** The append queue is at its limit: nothing was appended, try again later. */
export class StoreOverloaded extends Error {
  override readonly name = "StoreOverloaded";
  constructor() {
    super("the append queue is full");
  }
}

/** The disk is full: nothing was appended; works again by itself once there is room. */
export class StoreFull extends Error {
  override readonly name = "StoreFull";
  constructor() {
    super("no space left for the log");
  }
}

/** Whether the events are durable is unknown until the log is opened anew and read; this store stops. */
export class AppendInDoubt extends Error {
  override readonly name = "AppendInDoubt";
  constructor(cause: unknown) {
    super("the log could not confirm the append; the next start decides by reading", { cause });
  }
}

/** The append itself is unacceptable (no events, an oversized one, a name out of bounds). */
export class InvalidAppend extends Error {
  override readonly name = "InvalidAppend";
}

/** The store was closed, or stopped after a fault. */
export class StoreClosed extends Error {
  override readonly name = "StoreClosed";
  constructor() {
    super("the store is closed");
  }
}

/** Another service owns this log. `holder` is what that service wrote of itself. */
export class StoreOwned extends Error {
  override readonly name = "StoreOwned";
  readonly holder: string;
  constructor(holder: string) {
    super(`another service owns this log: ${holder}`);
    this.holder = holder;
  }
}

/** The file cannot serve as a log: another application's database, a newer format, an SQLite that is too old. */
export class StoreUnusable extends Error {
  override readonly name = "StoreUnusable";
}
