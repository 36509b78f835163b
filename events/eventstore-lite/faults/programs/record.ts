/** Bytes of one numbered record of write-raw.ts. */
export const RECORD_BYTES = 64;
