import { eastAsianWidth } from "get-east-asian-width";

/** Exit codes of commands. Those that sysexits(3) defines have its values. */
export const EXIT = {
  ok: 0,
  /** Exit code for a check that found a fault, or for an act that was performed only in part. */
  fault: 1,
  usage: 2,
  /** Exit code after the log has failed, so that a supervisor restarts the process. */
  software: 70,
  /** Exit code for a failure that may pass by itself, for example because another service owns the log now. */
  temporary: 75,
  config: 78,
} as const;

/** Emphasis of text on terminals with colours. The text says the same without colour. */
export type Style = "bold" | "green" | "red";

/** The environment from which a command reads its settings. */
export interface CommandEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The process in which a command runs: its output, its operator and its signals. */
export interface Terminal extends CommandEnvironment {
  out(text: string, style?: Style): void;
  err(text: string, style?: Style): void;
  /** Writes the program's own control sequences to stderr, never text from outside. If absent, `err` writes them. */
  draw?(text: string): void;
  /** Name of the caller in the command's events. Default: `command-line`. */
  readonly caller?: string;
  /** True if stderr is a terminal. Otherwise no progress is drawn. */
  readonly interactive: boolean;
  /** Asks the operator, and resolves with the line that they type. Absent if stdin or stderr is not a terminal. */
  ask?(question: string): Promise<string>;
  /** Signal that aborts on SIGINT and SIGTERM, to end the command. */
  readonly signal: AbortSignal;
}

/** Writes a command's answer: one JSON object with `--json`, else text for people. */
export function answer({ out }: Terminal, json: boolean | undefined, object: object, text: string): void {
  out(json === true ? `${JSON.stringify(object)}\n` : text);
}

/** Writes a command's answer that is a list: with `--json`, one object on each line. */
export function answerEach({ out }: Terminal, json: boolean | undefined, objects: readonly object[], text: string) {
  out(json === true ? objects.map((one) => `${JSON.stringify(one)}\n`).join("") : text);
}

/** Writes the reason of a command's failure to stderr. Returns the exit code. */
export function fail({ err }: Terminal, why: string): number {
  err(`${why}\n`);
  return EXIT.fault;
}

/**
 * Formats rows as aligned columns, without characters that steer a terminal. A wide character such as 漢 takes two
 * columns.
 */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const cells = [head, ...rows].map((row) => row.map((cell) => printable(String(cell))));
  const widths = head.map((_, column) => Math.max(...cells.map((row) => countColumns(row[column] ?? ""))));
  const pad = (cell: string, at: number): string => cell + " ".repeat((widths[at] ?? 0) - countColumns(cell));
  return cells.map((row) => `${row.map(pad).join("  ").trimEnd()}\n`).join("");
}

const CHARACTERS = new Intl.Segmenter("en", { granularity: "grapheme" });
const EMOJI = /^\p{RGI_Emoji}$/v;

/** Counts the columns that a text takes on a terminal: one or two for each visible character. */
function countColumns(text: string): number {
  let columns = 0;
  for (const { segment } of CHARACTERS.segment(text)) {
    columns += EMOJI.test(segment) ? 2 : eastAsianWidth(segment.codePointAt(0) ?? 0);
  }
  return columns;
}

/** Matches control characters, and characters that change the direction of the text after them. */
// oxlint-disable-next-line no-control-regex
const STEERING = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Replaces characters that steer a terminal, because text from outside may contain control sequences. */
export function printable(text: string): string {
  return text.replace(STEERING, "\ufffd");
}
