/** The contract suite for a store of your own, with the errors that it has to throw, and tools for tests. */
export {
  AppendInDoubt,
  BackupFailed,
  CursorRefused,
  ImportRefused,
  InvalidAppend,
  KeyReused,
  LogDiverged,
  SnapshotAhead,
  StoreBusy,
  StoreFull,
  StoreOverloaded,
  StoreOwned,
  StoreUnavailable,
  StoreUnusable,
  TargetTaken,
} from "./errors.ts";
export type { OpenStore, Runner } from "./testing/contract/test-runner-interface.ts";
export { newLogPlace, type LogPlace } from "./testing/reused-postgres-schemas.ts";
export { newDatabase, startPostgres, type PostgresServer } from "./testing/postgres-server.ts";
export { startProxy, type Proxy, type Verdict } from "./testing/faulty-postgres-proxy.ts";
export { rootsOfEvents } from "./testing/merkle-roots-of-events.ts";
export { storeContract } from "./testing/store-contract.ts";
export { countLoopIterations } from "./testing/count-event-loop-iterations.ts";
