import { InvalidAppend } from "./errors.ts";
import { NAME_CHARS_MAX } from "./limits.ts";

// Control characters separate fields in the canonical bytes and between the threads; forbidding
// them in names keeps both unambiguous without quoting.
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Throws {@link InvalidAppend} unless `name` is 1..512 well-formed characters without control characters. */
export function checkName(what: string, name: string): void {
  if (typeof name !== "string" || name.length === 0) throw new InvalidAppend(`${what} is empty`);
  if (name.length > NAME_CHARS_MAX) throw new InvalidAppend(`${what} is longer than ${NAME_CHARS_MAX} characters`);
  if (CONTROL.test(name)) throw new InvalidAppend(`${what} holds a control character`);
  // A lone surrogate would be stored as U+FFFD: the name read would not be the name written.
  if (!name.isWellFormed()) throw new InvalidAppend(`${what} is not well-formed Unicode`);
}
