import { withLookAlikes } from "./look-alikes.ts";
import { truncate } from "./plain-text.ts";

/** Characters of a text's body, counted in UTF-16 units, which are never fewer. */
const TEXT_UNITS_MAX = 4_096;

/** Foreign text as a body that shows as it was written. */
export function whatsappText(text: string): string {
  return withLookAlikes(truncate(text, TEXT_UNITS_MAX));
}
