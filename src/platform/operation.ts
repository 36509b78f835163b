import { Type, type Static, type TObject, type TProperties } from "@sinclair/typebox";

/** The kind of an operation's refusal. HTTP shows it by a status, the command line by an exit code. */
export type RefusalKind = "not_found" | "conflict" | "invalid" | "usage" | "configuration";

/** A refusal that an operation declares. Its name, with hyphens, is the slug of the HTTP problem. */
export interface DeclaredRefusal {
  readonly kind: RefusalKind;
  /**
   * One sentence about the refusal for people, the same on every surface. {@link refuse} gives the value of each
   * `{name}` in it.
   */
  readonly sentence: string;
  /** Members that the refusal's HTTP problem has in addition to those of all problems. */
  readonly more: readonly string[];
}

export function refusal(kind: RefusalKind, sentence: string, ...more: readonly string[]): DeclaredRefusal {
  return { kind, sentence, more };
}

export type DeclaredRefusals = Readonly<Record<string, DeclaredRefusal>>;

/** A declared refusal as an operation returns it, with the values of this case. */
export interface GivenRefusal<Name extends string = string> {
  readonly refusal: Name;
  /** Values for the `{name}`s in the refusal's sentence. */
  readonly values: Readonly<Record<string, string | number>>;
  /** Members that this refusal's HTTP problem has in addition to those of all problems. */
  readonly more: Readonly<Record<string, unknown>>;
}

/**
 * Creates a declared refusal with the values of this case. Without values, an operation may return the refusal's name
 * instead.
 */
export function refuse<const Name extends string>(
  name: Name,
  values: GivenRefusal["values"],
  more: GivenRefusal["more"] = {},
): GivenRefusal<Name> {
  return { refusal: name, values, more };
}

/** A refusal of an operation as its surfaces, such as HTTP and the command line, show it. */
export interface ShownRefusal extends Omit<DeclaredRefusal, "more"> {
  readonly more: GivenRefusal["more"];
  readonly name: string;
}

/** Returns the refusal that an operation returned. Undefined if it returned an answer. */
export function readRefusal(refusals: DeclaredRefusals = {}, found: string | object): ShownRefusal | undefined {
  if (typeof found === "object" && !("refusal" in found)) return undefined;
  const { refusal: name, values, more } = typeof found === "string" ? refuse(found, {}) : (found as GivenRefusal);
  const { kind, sentence } = refusals[name]!;
  const said = sentence.replaceAll(/\{(\w+)\}/g, (_, value: string) => String(values[value]));
  return { name, kind, sentence: said, more };
}

/** The caller of an operation, as events record it. */
export interface OperationCaller {
  /** Name of the caller's API token; `command-line` or `mcp` for commands and assistants. */
  readonly caller?: string;
  readonly request_id?: string;
  readonly traceparent?: string;
}

/** Personal data that an answer shows: the one recipient that the answer is about, and the number of records. */
export interface Disclosure {
  /** Kind of the personal data, if it differs from the operation's `personalRead`. */
  readonly resource?: string;
  readonly recipient?: { readonly id?: string; readonly username?: string };
  readonly records?: number;
}

/** Table of an answer for people. Each row has as many cells as the head. */
export interface TextTable {
  readonly head: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
}

/**
 * One thing that reachlog does or answers, described once. HTTP, the command line and the assistant's tools are made from it,
 * and show the same JSON.
 */
export interface Operation<
  Context = never,
  Input extends TProperties = TProperties,
  Output extends TProperties = TProperties,
  Refusals extends DeclaredRefusals = DeclaredRefusals,
> {
  /** Name of the operation: the words that are typed on the command line, such as `runs list`. */
  readonly name: string;
  /** Name of the operation's method in generated clients. */
  readonly id: string;
  readonly tag: "outreach" | "tracking" | "service";
  /** Protection of the operation over HTTP, and the scope that a caller's token needs. */
  readonly access: readonly ["strict" | "token" | "session", string];
  /** One sentence that says what the operation does. */
  readonly summary: string;
  /** Whole sentences about the operation; empty if its summary says it all. */
  readonly description: string;
  /** Kind of the personal data in the operation's answer; false if it holds none. */
  readonly personalRead: string | false;
  /** Returns which part of the personal data this answer shows; `nothing` if it shows none. */
  discloses?(answer: Static<TObject<Output>>, input: Static<TObject<Input>>, context: Context): Disclosure | "nothing";
  readonly input: Input;
  /** Members of the input that are arguments on the command line, in their order. The others are options. */
  readonly positional?: readonly (keyof Input & string)[];
  /** Schema of the operation's answer, with all its members. A member that is not named here is never shown. */
  readonly output: Output;
  /**
   * Member of the answer that is a page of a list. The operation then also answers `count` (of all pages) and `next`,
   * and takes `limit` and `after`: see {@link pageInput}.
   */
  readonly list?: keyof Output & string;
  readonly refusals?: Refusals;
  /**
   * Returns the question to ask before an operation that cannot be undone. Undefined if this input needs none. The
   * command line asks it, unless `--yes` is given.
   */
  confirm?(input: Static<TObject<Input>>): string | undefined;
  /**
   * Returns the input that limits the operation to what its dry run (`dry_run`) answered. The command line makes a dry
   * run first, and asks about this input.
   */
  holdTo?(counted: Static<TObject<Output>>, input: Static<TObject<Input>>): Static<TObject<Input>>;
  /**
   * True if the operation can also answer where no log exists. Then reading a state, by `at` of its context, rejects.
   */
  readonly isLogOptional?: true;
  /** True if the command line can repeat the operation, with `--watch`. */
  readonly isRepeatable?: true;
  /** True if the operation may take longer than a connection may be idle. */
  readonly isSlow?: true;
  /**
   * Runs the operation: returns the answer, or a refusal. Throws a ServiceError (usage) for an input that no schema can
   * refuse.
   */
  run(
    context: Context,
    input: Static<TObject<Input>>,
    caller: OperationCaller,
  ): Promise<Static<TObject<Output>> | (keyof Refusals & string) | GivenRefusal<keyof Refusals & string>>;
  /** File that the command line writes about the finished operation, if the operator names one. */
  readonly file?: OperationFile<Static<TObject<Output>>, Static<TObject<Input>>>;
  /** True if the operation did only a part. The command line says so by its exit code. */
  isPartial?(answer: Static<TObject<Output>>, input: Static<TObject<Input>>): boolean;
  /** Returns the rows of an answer that is a list. Undefined if this answer is not a list. */
  table?(answer: Static<TObject<Output>>, input: Static<TObject<Input>>): TextTable | undefined;
  /** Returns the answer as CSV: with `--csv` on the command line, and over HTTP by `format` or `Accept`. */
  csv?(answer: Static<TObject<Output>>, input: Static<TObject<Input>>): string;
  /** Returns the answer as text for people: the text below the table, or all of it. */
  text(answer: Static<TObject<Output>>, input: Static<TObject<Input>>): string;
  /** Examples of the operation's arguments on the command line. */
  readonly examples: readonly string[];
}

/** Description of a file about a finished operation, which holds one JSON object. */
export interface OperationFile<Answer, Input> {
  /** Name of the command line's option that takes the file's path. */
  readonly option: string;
  readonly description: string;
  /** Returns the file's content. `context` is that of a command which writes. */
  describe(context: never, answer: Answer, input: Input): Promise<object>;
}

/** Declares an operation: returns its description unchanged, with the types of its schemas. */
export function operation<
  Context,
  const Input extends TProperties,
  const Output extends TProperties,
  const Refusals extends DeclaredRefusals = DeclaredRefusals,
>(described: Operation<Context, Input, Output, Refusals>): Operation<Context, Input, Output, Refusals> {
  return described;
}

/** An operation's description without its types, for surfaces that handle all operations alike. */
export type AnyOperation = Operation;

/** True if the operation only reads. */
export function isReading({ access: [, scope] }: AnyOperation): boolean {
  return scope === "read";
}

/** The input of each operation that answers a list in pages: `shown` rows by default, `max` at most. */
export function pageInput(shown: number, max: number) {
  return {
    limit: Type.Optional(
      Type.Integer({ title: "number", minimum: 1, maximum: max, description: `How many; default: ${shown}` }),
    ),
    after: Type.Optional(
      Type.Integer({ title: "number", minimum: 1, description: "Only what follows: the `next` of an answer" }),
    ),
  };
}

/** Converts the text of a query or a command line to the value that the schema of an input's member wants. */
export function readMember(schema: TProperties[string], text: string): unknown {
  if (schema["type"] === "integer" && /^\d{1,15}$/.test(text)) return Number(text);
  if (isFlag(schema) && /^(?:true|false)$/.test(text)) return text === "true";
  return text;
}

/** True if the member is a flag, which has no value on a command line. */
export function isFlag(schema: TProperties[string]): boolean {
  return schema["type"] === "boolean";
}

/** Returns the schema of a list's entries. Undefined if the schema is not that of a list. */
export function itemSchema(schema: TProperties[string]): TProperties[string] | undefined {
  return schema["type"] === "array" ? (schema["items"] as TProperties[string]) : undefined;
}

/**
 * Returns the values that a member's schema names. `isOpen` is true if the member also takes others. Undefined if the
 * schema names none.
 */
export function listChoices(schema: TProperties[string]) {
  const members = (schema["anyOf"] ?? [schema]) as readonly { readonly const?: unknown }[];
  const choices = members.flatMap(({ const: value }) => (typeof value === "string" ? [value] : []));
  return choices.length === 0 ? undefined : { choices, isOpen: choices.length < members.length };
}

/** True if the member of an operation's input may be left out. */
export function isOptional(schema: TProperties[string]): boolean {
  return Type.Object({ member: schema }).required === undefined;
}
