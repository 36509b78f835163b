/** Length in bytes of each numbered record that write-raw.ts writes. */
export const RECORD_BYTES = 64;
