/** Whether this runs on Bun: where others do differently what cannot be written in one way for all. */
export const isBun: boolean = process.versions.bun !== undefined;
