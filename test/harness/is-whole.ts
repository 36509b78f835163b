/** True if long tests try all that they can, and not the part for which a run of all files has time. */
export const isWhole = process.env["FAULTS_WHOLE"] === "1";
