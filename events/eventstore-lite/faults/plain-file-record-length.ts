/** Length in bytes of each numbered record that fsync-plain-file.ts writes. */
export const RECORD_BYTES = 64;
