import { eastAsianWidth } from "get-east-asian-width";

/** Exit codes of commands, as in sysexits(3) where it has one. */
export const EXIT = {
  ok: 0,
  /** Exit code for a check that found a fault, or an act that was done in part only. */
  fault: 1,
  usage: 2,
  /** Exit code after the log has failed: a supervisor must restart the process. */
  software: 70,
  /** Exit code for a failure that may pass, such as when another service owns the log now. */
  temporary: 75,
  config: 78,
} as const;

/** Emphasis of text on terminals with colours. No information is in the colour alone. */
export type Style = "bold" | "green" | "red";

/** The environment that a command reads its settings from. */
export interface CommandEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The process that a command runs in, as the command sees it: its output, its operator and its signals. */
export interface Terminal extends CommandEnvironment {
  out(text: string, style?: Style): void;
  err(text: string, style?: Style): void;
  /** Writes the program's own control sequences to stderr, never text from outside. If absent, `err` writes them. */
  draw?(text: string): void;
  /** The caller that the command's events record; default: `command-line`. */
  readonly caller?: string;
  /** True if stderr is a terminal. Otherwise no progress is drawn. */
  readonly interactive: boolean;
  /** Asks the operator, and resolves with the typed line. Absent if stdin or stderr is not a terminal. */
  ask?(question: string): Promise<string>;
  /** Signal that aborts on SIGINT and SIGTERM, to end the command. */
  readonly signal: AbortSignal;
}

/** Writes a command's answer: with `--json` one JSON object, else text for people. */
export function answer({ out }: Terminal, json: boolean | undefined, object: object, text: string): void {
  out(json === true ? `${JSON.stringify(object)}\n` : text);
}

/** Writes a command's answer that is a list: with `--json` one object a line. */
export function answerEach({ out }: Terminal, json: boolean | undefined, objects: readonly object[], text: string) {
  out(json === true ? objects.map((one) => `${JSON.stringify(one)}\n`).join("") : text);
}

/** Writes the reason of a command's failure to stderr. Returns the exit code. */
export function fail({ err }: Terminal, why: string): number {
  err(`${why}\n`);
  return EXIT.fault;
}

/** Formats rows as aligned columns, safe for a terminal. Widths count the terminal's columns: 漢 takes two. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const cells = [head, ...rows].map((row) => row.map((cell) => printable(String(cell))));
  const widths = head.map((_, column) => Math.max(...cells.map((row) => countColumns(row[column] ?? ""))));
  const pad = (cell: string, at: number): string => cell + " ".repeat((widths[at] ?? 0) - countColumns(cell));
  return cells.map((row) => `${row.map(pad).join("  ").trimEnd()}\n`).join("");
}

const CHARACTERS = new Intl.Segmenter("en", { granularity: "grapheme" });
const EMOJI = /^\p{RGI_Emoji}$/v;

/** Counts the columns that a text takes on a terminal: one or two for each character that people see. */
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

/** Replaces characters that steer a terminal: text from outside may hold control sequences. */
export function printable(text: string): string {
  return text.replace(STEERING, "\ufffd");
}
