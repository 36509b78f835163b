import type * as typed from "@commander-js/extra-typings";
import type { TProperties } from "@sinclair/typebox";
import { sleep } from "../../platform/clock-ids-and-timers.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import {
  isFlag,
  isOptional,
  itemSchema,
  listChoices,
  readMember,
  type AnyOperation,
} from "../../platform/operation.ts";
import { absolutePath, Argument, Command, JSON_OPTION, Option, type MakeCommand } from "./command.ts";
import { runOperation } from "./run-operation.ts";
import { EXIT, type Terminal } from "./terminal-answers-and-exit-codes.ts";

/**
 * Pause in ms between two runs of a command with `--watch`: short enough to see a backlog shrink, although each run
 * opens the log.
 */
const WATCH_MS = 2_000;

/**
 * Creates the command of an operation. Its arguments and options are the members of the input, and its help is the
 * operation's description.
 */
export function toCommand(described: AnyOperation): MakeCommand {
  const {
    name,
    summary,
    description,
    input,
    positional = [],
    confirm,
    list,
    csv,
    file,
    isRepeatable,
    examples,
  } = described;
  const last = name.split(" ").at(-1)!;
  return (terminal) => {
    const command: typed.CommandUnknownOpts = new Command(last).summary(toPhrase(summary)).description(description);
    for (const member of positional) command.addArgument(toArgument(member, input[member]!));
    const options = Object.entries(input).filter(([member]) => !positional.includes(member));
    for (const [member, schema] of options) command.addOption(toOption(member, schema));
    if (file !== undefined) command.option(`--${file.option} <file>`, toPhrase(file.description), absolutePath);
    if (confirm !== undefined) command.option("--yes", "do not ask");
    if (list === undefined) command.option(...JSON_OPTION);
    else command.option("--json", "answer with one JSON object for each row; without --limit, all pages");
    if (csv !== undefined) command.addOption(new Option("--csv", "answer with CSV").conflicts("json"));
    if (isRepeatable === true) command.option("--watch", `repeat every ${WATCH_MS / 1_000} seconds, until interrupted`);
    const action = async (...given: readonly unknown[]): Promise<number> => {
      const {
        json,
        csv: isCsv,
        yes,
        watch,
        ...chosen
      } = given[positional.length] as Record<string, unknown> & {
        json?: true;
        csv?: true;
        yes?: true;
        watch?: true;
      };
      // If the argument for a list is left out, the list is empty.
      const named = positional.flatMap((member, at) =>
        [given[at]].flat().length === 0 ? [] : [[member, given[at]] as const],
      );
      const members = options.map(([member]) => [member, chosen[toCamelCase(member)]] as const);
      const inputs = omitUndefined(Object.fromEntries([...named, ...members]));
      const path = file && (chosen[toCamelCase(file.option)] as string | undefined);
      const run = () => runOperation(terminal, described, inputs, { json, csv: isCsv, yes, file: path });
      return await (watch === true ? repeatUntilStopped(terminal, run) : run());
    };
    command.action(action as Parameters<typeof command.action>[0]);
    return command.examples(...examples.map((one) => `reachlog ${name} ${one}`.trimEnd()));
  };
}

/** Repeats a command until it fails or a signal comes. Returns the exit code of the failure or of the signal. */
async function repeatUntilStopped({ signal }: Terminal, run: () => Promise<number>): Promise<number> {
  for (;;) {
    const code = await run();
    if (code !== EXIT.ok) return code;
    await sleep(WATCH_MS, signal);
    // The reason of the abort is the exit code that a shell expects after the signal.
    if (signal.aborted) return Number(signal.reason);
  }
}

/**
 * Returns a function that makes a command together with the operations below it, such as `links list` below `links`.
 */
export function withOperations(make: MakeCommand, operations: readonly AnyOperation[]): MakeCommand {
  return (terminal) => {
    const command = make(terminal);
    for (const described of operations) {
      if (described.name.startsWith(`${command.name()} `)) command.addCommand(toCommand(described)(terminal));
    }
    return command;
  };
}

/** Creates the command-line argument for a member of an operation's input; a list takes all arguments that follow. */
function toArgument(member: string, schema: TProperties[string]): typed.Argument {
  const item = itemSchema(schema);
  const name = item === undefined ? member : `${member}...`;
  const argument = new Argument(isOptional(schema) ? `[${name}]` : `<${name}>`, toPhrase(schema.description ?? ""));
  const named = listChoices(item ?? schema);
  if (named !== undefined) return takeChoices(argument, named);
  if (item === undefined) return argument.argParser((text: string) => readMember(schema, text));
  return argument.argParser((text: string, others: unknown) => [...toList(others), readMember(item, text)]);
}

/**
 * Creates the option for a member of an operation's input: `as_of` becomes `--as-of <moment>`. The option of a list is
 * given once for each entry.
 */
function toOption(member: string, schema: TProperties[string]): typed.Option {
  const item = itemSchema(schema);
  const { title = "text" } = item ?? schema;
  const flag = `--${member.replaceAll("_", "-")}`;
  const option = new Option(isFlag(schema) ? flag : `${flag} <${title}>`, toPhrase(schema.description ?? ""));
  option.makeOptionMandatory(!isOptional(schema));
  if (isFlag(schema)) return option;
  const named = listChoices(schema);
  if (named !== undefined) return takeChoices(option, named);
  if (item === undefined) return option.argParser((text: string) => readMember(schema, text));
  return option.argParser((text: string, others: unknown) => [...toList(others), readMember(item, text)]);
}

/**
 * Sets the choices of an argument or option. If other values are valid too, the choices are only for completion and
 * help.
 */
function takeChoices<Taker extends typed.Argument | typed.Option>(
  taker: Taker,
  { choices, isOpen }: NonNullable<ReturnType<typeof listChoices>>,
): Taker {
  return isOpen ? Object.assign(taker, { argChoices: choices }) : (taker.choices(choices) as Taker);
}

/** Returns the values that an option, which may be repeated, has got so far; empty before the first one. */
function toList(others: unknown): readonly unknown[] {
  return Array.isArray(others) ? others : [];
}

/** Converts a sentence to a phrase of help: `Shows the runs.` becomes `shows the runs`. */
function toPhrase(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1).replace(/\.$/, "");
}

function toCamelCase(member: string): string {
  return member.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}
