/**
 * Characters that steer a terminal, turn the direction of text around, or end a line for some readers and not for others.
 * Tab, line feed, and a carriage return before one stay: they are how text is laid out.
 */
const STEERING =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]|\r(?!\n)/g;

/** Escapes these characters as `\uXXXX`; JSON keeps its meaning. */
export function escapeControls(text: string): string {
  return text.replace(STEERING, escapeUnits);
}

/** Each UTF-16 unit as JSON can write it: `\uXXXX`. */
export function escapeUnits(text: string): string {
  return text.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
