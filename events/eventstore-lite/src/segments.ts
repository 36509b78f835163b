/** Sealed segments, their storage, and the archive. */
export { SegmentDamaged } from "./errors.ts";
export { openSegment, sealSegments, type OpenedSegment } from "./segments/seal-and-open-segments.ts";
export { createSegmentFolder, type SegmentStorage } from "./segments/segment-storage.ts";
export { copyFromSegments } from "./sqlite/import/from-segments.ts";
export type { ArchivedSegment } from "./event-store-interface.ts";

// For an application that keeps files next to a log: durable, readable by their owner alone, and locked.
export {
  createPrivateFile,
  makePrivateFile,
  replacePrivateFile,
  writePrivateFile,
} from "./write-private-file-durably.ts";
export { rememberFiles } from "./detect-replaced-files.ts";
export { takeOwnership } from "./sqlite/ownership.ts";
