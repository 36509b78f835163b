/**
 * Matches characters that steer a terminal, reverse the direction of text, or end a line for some readers only. Tab,
 * line feed, and a carriage return before a line feed are left out, because they lay out text.
 */
const STEERING =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]|\r(?!\n)/g;

/** Escapes the characters of a text that steer a terminal or hide text, as `\uXXXX`. JSON keeps its meaning. */
export function escapeControls(text: string): string {
  return text.replace(STEERING, escapeUnits);
}

/** Writes each UTF-16 unit as `\uXXXX`, as JSON can. */
export function escapeUnits(text: string): string {
  return text.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
