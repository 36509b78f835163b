import type * as typed from "@commander-js/extra-typings";
import type { TProperties } from "@sinclair/typebox";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { listChoices, isOptional, readMember, type AnyOperation } from "../../platform/operation.ts";
import type { LogReader } from "../../projector/log-reader.ts";
import { Command, createNumberParser, JSON_OPTION, Option, readConfig, type MakeCommand } from "./command.ts";
import { openExistingLog } from "./log-session.ts";
import { foldToMoment } from "./moment.ts";
import { parseMoment } from "../../projector/parse-moment.ts";
import { answer, EXIT, table, type Terminal } from "./terminal.ts";

/** The command of an operation: arguments and options are the members of its input, and help is made of its words. */
export function toCommand(described: AnyOperation): MakeCommand {
  const { name, summary, description, input, positional = [], examples } = described;
  const last = name.split(" ").at(-1)!;
  return (terminal) => {
    const command: typed.CommandUnknownOpts = new Command(last).summary(toPhrase(summary)).description(description);
    for (const member of positional) {
      const isLeftOut = isOptional(input[member]!);
      command.argument(isLeftOut ? `[${member}]` : `<${member}>`, toPhrase(input[member]!.description ?? ""));
    }
    const options = Object.entries(input).filter(([member]) => !positional.includes(member));
    for (const [member, schema] of options) command.addOption(toOption(member, schema));
    command.option(...JSON_OPTION);
    const action = async (...given: readonly unknown[]): Promise<number> => {
      const { json, ...chosen } = given[positional.length] as Record<string, unknown> & { json?: true };
      const named = positional.map((member, at) => [member, given[at]] as const);
      const members = options.map(([member]) => [member, chosen[toCamelCase(member)]] as const);
      return await run(terminal, described, omitUndefined(Object.fromEntries([...named, ...members])), json);
    };
    command.action(action as Parameters<typeof command.action>[0]);
    return command.examples(...examples.map((one) => `reachlog ${name} ${one}`.trimEnd()));
  };
}

/** Runs an operation on the configured log, and writes its answer. Returns the exit code. */
async function run(
  terminal: Terminal,
  described: AnyOperation,
  input: object,
  json: true | undefined,
): Promise<number> {
  await using context = await openReader(terminal);
  const found = await described.run(context as never, input as never);
  if (typeof found === "string") {
    terminal.err(`${described.refusals![found]!.sentence}\n`);
    return EXIT.fault;
  }
  const rows = described.table?.(found, input as never);
  const text = described.text(found, input as never);
  answer(terminal, json, found, rows === undefined ? text : `${table(rows.head, rows.rows)}${text}`);
  return EXIT.ok;
}

/** Opens the context of an operation that reads, beside a running service. */
export async function openReader(terminal: Terminal) {
  const config = readConfig(terminal);
  const store = await openExistingLog(terminal);
  const reader: LogReader = {
    store,
    clock: store.logClock.now,
    async at(asOf, ...names) {
      const moment = parseMoment(asOf, config.outreach.timezone);
      return { ...(await foldToMoment(terminal, store, names, moment)), moment };
    },
  };
  return { config, ...reader, [Symbol.asyncDispose]: store[Symbol.asyncDispose] };
}

/** The option of a member: `as_of` is `--as-of <moment>`. */
function toOption(member: string, schema: TProperties[string]): typed.Option {
  const {
    title = "text",
    description = "",
    minimum = 0,
    maximum,
  } = schema as typeof schema & {
    minimum?: number;
    maximum?: number;
  };
  const flag = `--${member.replaceAll("_", "-")}`;
  const option = new Option(schema["type"] === "boolean" ? flag : `${flag} <${title}>`, toPhrase(description));
  const choices = listChoices(schema);
  if (choices !== undefined) return option.choices(choices);
  if (schema["type"] !== "integer") return option;
  const parse = createNumberParser(`${flag} needs a number`, minimum, maximum);
  return option.argParser((text: string) => parse(String(readMember(schema, text))));
}

/** A sentence as a phrase of help: `Shows the runs.` is `shows the runs`. */
function toPhrase(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1).replace(/\.$/, "");
}

function toCamelCase(member: string): string {
  return member.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}
