import type { Config } from "../config/config.ts";
import type { StateContext } from "../log/event-log.ts";
import type { LogClock } from "../log/log-time-and-clock-skew.ts";
import type { Vault } from "../vault/vault.ts";
import type { Keyring } from "./keyring.ts";
import type { OpenedLog } from "./open-log.ts";
import type { FindLinkKeys } from "./person-keys.ts";
import type { HashesOf } from "./suppression-hashes.ts";

/** The context that commands, the service and tests work in: the configured log, and everything that belongs to it. */
export interface Reachlog extends StateContext {
  readonly config: Config;
  readonly encryptedLog: OpenedLog;
  readonly keyring: Keyring;
  readonly vault: Vault;
  readonly logClock: LogClock;
  /** Returns keyed hashes by which a suppressed recipient is recognised once all else about them is erased. */
  readonly hashesOf: HashesOf;
  readonly findLinkKeys: FindLinkKeys;
}

/** The context of an operation that changes the log. */
export interface WriteContext extends Reachlog {
  /** Aborts when the process stops: the operation then ends between two steps. */
  readonly stopping: AbortSignal;
  /** A long read calls this with the position that it has reached. */
  readonly onProgress?: (position: number) => void;
}
