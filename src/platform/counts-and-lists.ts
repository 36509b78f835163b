/** `spec or strict`; `slack, discord or teams`. */
export const EITHER = new Intl.ListFormat("en-GB", { type: "disjunction" });

/** `consent_at and consent_source`. */
export const ALL_OF = new Intl.ListFormat("en-GB", { type: "conjunction" });

/** 12,345 */
export function grouped(number: number): string {
  return number.toLocaleString("en-US");
}

/** `1 click`, `1,200 clicks` */
export function countInWords(number: number, one: string, several = `${one}s`): string {
  return `${grouped(number)} ${number === 1 ? one : several}`;
}
