/** `spec or strict`; `slack, discord or teams`. */
export const EITHER = new Intl.ListFormat("en-GB", { type: "disjunction" });

/** `consent_at and consent_source`. */
export const ALL_OF = new Intl.ListFormat("en-GB", { type: "conjunction" });
