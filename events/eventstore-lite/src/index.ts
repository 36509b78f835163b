// The public entry: the contract, its errors, and the stores on SQLite and PostgreSQL.
export { createSegmentFolder, type SegmentStorage } from "./archive/storage.ts";
export { andThen, type Awaitable } from "./awaitable.ts";
export {
  contradictionOf,
  openCheckpoint,
  signCheckpoint,
  type Checkpoint,
  type Contradiction,
} from "./checkpoint/checkpoint.ts";
export { readCheckpointFile, writeCheckpointFile } from "./checkpoint/file.ts";
export { cosignedAt, formatVerifierKey, parseNote, type Cosigner } from "./checkpoint/note.ts";
export {
  formatPublicKey,
  loadSigningKey,
  parsePublicKey,
  parseVerifierKey,
  signingKeyOf,
  type SigningKey,
} from "./checkpoint/signing-key.ts";
export * from "./errors.ts";
export { createLogTree, type LogTree } from "./merkle/log-tree.ts";
export { proveEvent, proveExtension } from "./merkle/prove.ts";
export { formatProof, openProof, type ProvedEvent } from "./merkle/proof.ts";
export { createTreeRange, hashLeaf, provesConsistency, provesInclusion, type TreeHead } from "./merkle/tree.ts";
export { formatSubmission, openWitness, type Witness, type WitnessAnswer } from "./merkle/witness.ts";
export { openSegment, sealSegments, type OpenedSegment, type Segment, type SegmentHeader } from "./segment.ts";
export { copyFromSegments, type SegmentsOptions } from "./sqlite/import/from-segments.ts";
export { importSqliteLog, type ImportOptions } from "./sqlite/import/import.ts";
export type { Limits } from "./limits.ts";
export { type Database, openDatabase } from "./postgres/database.ts";
export { migrate, type MigrateOptions } from "./postgres/migrate.ts";
export { importPostgresLog, type PostgresImportOptions } from "./postgres/import.ts";
export { openPostgresStore, type PostgresStoreOptions } from "./postgres/open.ts";
export {
  beginPostgresEpoch,
  identifyPostgresLog,
  isPostgresLogElsewhere,
  knownPostgresPlace,
  type PlaceKnown,
  type PostgresLogPlace,
} from "./postgres/place.ts";
export { createPrivateFile, makePrivateFile, replacePrivateFile, writePrivateFile } from "./private-file.ts";
export { rememberFiles } from "./same-files.ts";
export { restorePostgresLog, type PostgresRestoreOptions } from "./postgres/restore.ts";
export { compactSqliteLog } from "./sqlite/compact.ts";
export { examineSqliteLog, identifySqliteLog, type ExaminedLog } from "./sqlite/examine.ts";
export { beginSqliteEpoch, takeOwnership } from "./sqlite/ownership.ts";
export { openSqliteStore, type SqliteStoreOptions } from "./sqlite/open.ts";
export type * from "./store.ts";
