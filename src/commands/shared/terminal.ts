import { eastAsianWidth } from "get-east-asian-width";

/** Exit codes, after sysexits(3) where it has one. */
export const EXIT = {
  ok: 0,
  /** Something was found wrong, or was done in part only. */
  fault: 1,
  usage: 2,
  /** The log failed: the process must be restarted. */
  software: 70,
  /** Another service owns the log. */
  temporary: 75,
  config: 78,
} as const;

/** Emphasis on terminals with colours. No information is in the colour alone. */
export type Style = "bold" | "green" | "red";

/** What a command sees of the process that it runs in. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  out(text: string, style?: Style): void;
  err(text: string, style?: Style): void;
  /** Control sequences of our own, to stderr; absent: `err` takes them. Nothing that others wrote goes this way. */
  draw?(text: string): void;
  /** The caller of what a command causes; absent: `command-line`. */
  readonly caller?: string;
  /** Whether stderr is a terminal: only then progress is drawn. */
  readonly interactive: boolean;
  /** Asks the operator, and answers the line that was typed; absent: stdin or stderr is no terminal. */
  ask?(question: string): Promise<string>;
  /** Aborts on SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}

/** Writes an answer: with `--json` one JSON object, else text for people. */
export function answer({ out }: Terminal, json: boolean | undefined, object: object, text: string): void {
  out(json === true ? `${JSON.stringify(object)}\n` : text);
}

/** The same of a list: with `--json` one object a line. */
export function answerEach({ out }: Terminal, json: boolean | undefined, objects: readonly object[], text: string) {
  out(json === true ? objects.map((one) => `${JSON.stringify(one)}\n`).join("") : text);
}

/** Writes the reason of a failure to stderr. Returns the exit code. */
export function fail({ err }: Terminal, why: string): number {
  err(`${why}\n`);
  return EXIT.fault;
}

/** Rows as aligned columns, made safe for a terminal. Widths are those of the terminal: 漢 takes two columns. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const cells = [head, ...rows].map((row) => row.map((cell) => printable(String(cell))));
  const widths = head.map((_, column) => Math.max(...cells.map((row) => countColumns(row[column] ?? ""))));
  const pad = (cell: string, at: number): string => cell + " ".repeat((widths[at] ?? 0) - countColumns(cell));
  return cells.map((row) => `${row.map(pad).join("  ").trimEnd()}\n`).join("");
}

const CHARACTERS = new Intl.Segmenter("en", { granularity: "grapheme" });
const EMOJI = /^\p{RGI_Emoji}$/v;

/** How wide a terminal shows it: what people see as one character takes one column or two. */
function countColumns(text: string): number {
  let columns = 0;
  for (const { segment } of CHARACTERS.segment(text)) {
    columns += EMOJI.test(segment) ? 2 : eastAsianWidth(segment.codePointAt(0) ?? 0);
  }
  return columns;
}

/** Control characters, and those that turn the direction of what follows. */
// oxlint-disable-next-line no-control-regex
const STEERING = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Text from outside may hold escape sequences that would steer the terminal. */
export function printable(text: string): string {
  return text.replace(STEERING, "\ufffd");
}
