import { parseArgs, type ParseArgsOptionsConfig } from "node:util";
import { loadConfig, type Config } from "../config/config.ts";
import { readFileSync } from "node:fs";
import { printable } from "./table.ts";
import { ServiceError } from "../platform/service-error.ts";

/** Exit codes, after sysexits(3) where it has one. */
export const EXIT = {
  ok: 0,
  /** Something was found wrong, or was done in part only. */
  fault: 1,
  usage: 2,
  /** The log failed: the process must be started anew. */
  software: 70,
  /** Another service owns the log. */
  temporary: 75,
  config: 78,
} as const;

/** The world as a command sees it. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  out(text: string): void;
  err(text: string): void;
  /** Control sequences of our own, to stderr; absent: `err` takes them. Nothing that others wrote goes this way. */
  draw?(text: string): void;
  /** Whether stderr is a terminal: only then progress is drawn. */
  readonly interactive: boolean;
  /** Aborts on SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}

export interface Command {
  readonly summary: string;
  /** What `--help` prints. */
  readonly help: string;
  /** Answers the exit code. */
  run(args: readonly string[], terminal: Terminal): Promise<number>;
}

/** The arguments do not fit; told with a pointer to `--help`. */
export class UsageError extends ServiceError<"usage"> {
  override readonly name = "UsageError";
  constructor(message: string) {
    super("usage", message);
  }
}

/** Parses arguments strictly: an unknown option is a UsageError, and so is an argument behind the `most` first ones. */
export function parse<Options extends ParseArgsOptionsConfig>(args: readonly string[], options: Options, most = 0) {
  const parsed = parseStrictly(args, options);
  refuseMore(parsed.positionals, most);
  return parsed;
}

/** Throws UsageError on an argument behind the `most` first ones: ignored, it would look as if it had been heeded. */
export function refuseMore(positionals: readonly string[], most: number): void {
  const excess = positionals[most];
  if (excess !== undefined) throw new UsageError(`${printable(excess)} is one argument too many`);
}

function parseStrictly<Options extends ParseArgsOptionsConfig>(args: readonly string[], options: Options) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (fault) {
    throw new UsageError(printable(misuse(fault instanceof Error ? fault : new Error(String(fault)))));
  }
}

/** The parser's own words, without its advice to programmers. */
function misuse({ message }: Error): string {
  const option = /'(-{1,2}[^' =]+)/.exec(message)?.[1];
  if (option === undefined) return message;
  if (message.startsWith("Unknown option")) return `there is no option ${option}`;
  return message.includes("does not take") ? `${option} takes no value` : `${option} wants a value`;
}

/** The configuration of the environment. Throws a ServiceError (configuration). */
export function configOf({ env }: Terminal): Config {
  return loadConfig(env, (path) => readFileSync(path, "utf8"));
}
