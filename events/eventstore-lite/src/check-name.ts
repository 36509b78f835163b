import { InvalidAppend } from "./errors.ts";
import { NAME_CHARS_MAX } from "./limits.ts";

// Line breaks separate an event's fields. A lone surrogate would be stored as U+FFFD, and read as another name; with the
// u flag, surrogates in pairs do not match.
// oxlint-disable-next-line no-control-regex
const NAME = /^[^\u0000-\u001f\u007f-\u009f\ud800-\udfff]+$/u;

/** Throws {@link InvalidAppend} unless `name` is 1..512 characters, well-formed and without control characters. */
export function checkName(what: string, name: string): void {
  if (typeof name !== "string" || !NAME.test(name)) {
    throw new InvalidAppend(`${what} is empty, holds a control character or is not well-formed`);
  }
  if (name.length > NAME_CHARS_MAX) throw new InvalidAppend(`${what} is longer than ${NAME_CHARS_MAX} characters`);
}
