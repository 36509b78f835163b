/** Largest file that is read, in bytes: it is held in memory as a whole. */
export const FILE_BYTES_MAX = 50 * 1024 * 1024;

/** Largest file that is taken over HTTP, in bytes: a hundred thousand people with some fields each. */
export const SENT_BYTES_MAX = 10 * 1024 * 1024;

/** The widest sheet of a spreadsheet program: exports of nearly empty ones have as many columns without a name. */
export const COLUMNS_MAX = 16_384;

/** At 100 messages a day more rows than this would take 27 years. */
export const ROWS_MAX = 1_000_000;
