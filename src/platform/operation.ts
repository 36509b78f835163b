import { Type, type Static, type TObject, type TProperties } from "@sinclair/typebox";

/** The kind of a refusal. HTTP shows it by a status, the command line by an exit code. */
export type RefusalKind = "not_found" | "conflict" | "invalid";

/** A refusal that an operation declares. Its name, with hyphens, is the slug of its problem. */
export interface DeclaredRefusal {
  readonly kind: RefusalKind;
  /** One sentence for people, the same on every surface. */
  readonly sentence: string;
}

export function refusal(kind: RefusalKind, sentence: string): DeclaredRefusal {
  return { kind, sentence };
}

export type DeclaredRefusals = Readonly<Record<string, DeclaredRefusal>>;

/** Rows with as many cells as the head. */
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
  /** The words that are typed on the command line, such as `runs list`. */
  readonly name: string;
  /** The name of the method in generated clients. */
  readonly id: string;
  readonly tag: "outreach" | "tracking" | "service";
  /** The protection over HTTP, and the scope that a token needs. */
  readonly access: readonly ["strict" | "token" | "session", string];
  /** One sentence. */
  readonly summary: string;
  /** Whole sentences; empty if the summary says it all. */
  readonly description: string;
  /** The personal data in the answer; false if it holds none. */
  readonly personalRead: string | false;
  readonly input: Input;
  /** Members of the input that are arguments on the command line, in their order. The others are options. */
  readonly positional?: readonly (keyof Input & string)[];
  /** Every member of the answer; what is not named here is never shown. */
  readonly output: Output;
  readonly refusals?: Refusals;
  /** Returns the answer, or the name of a refusal. Throws a ServiceError (usage) for an input that no schema can refuse. */
  run(context: Context, input: Static<TObject<Input>>): Promise<Static<TObject<Output>> | (keyof Refusals & string)>;
  /** The rows of an answer that is a list; undefined if this answer is none. */
  table?(answer: Static<TObject<Output>>, input: Static<TObject<Input>>): TextTable | undefined;
  /** The answer for people: what stands below the table, or all of it. */
  text(answer: Static<TObject<Output>>, input: Static<TObject<Input>>): string;
  /** Arguments of the command line, each an example. */
  readonly examples: readonly string[];
}

/** Returns the description unchanged, with the types that its schemas say. */
export function operation<
  Context,
  const Input extends TProperties,
  const Output extends TProperties,
  const Refusals extends DeclaredRefusals = DeclaredRefusals,
>(described: Operation<Context, Input, Output, Refusals>): Operation<Context, Input, Output, Refusals> {
  return described;
}

/** The description without its types, for surfaces that know no operation by name. */
export type AnyOperation = Operation;

/** The value of an input's member as its schema wants it, from the text of a query or a command line. */
export function readMember(schema: TProperties[string], text: string): unknown {
  const isNumber = schema["type"] === "integer" && /^\d{1,15}$/.test(text);
  return isNumber ? Number(text) : text;
}

/** The values that a member is limited to; undefined if it is any text or number. */
export function listChoices(schema: TProperties[string]): readonly string[] | undefined {
  const members = (schema["anyOf"] ?? []) as readonly { readonly const?: unknown }[];
  const choices = members.flatMap(({ const: value }) => (typeof value === "string" ? [value] : []));
  return choices.length > 0 && choices.length === members.length ? choices : undefined;
}

/** True if the member may be left out. */
export function isOptional(schema: TProperties[string]): boolean {
  return Type.Object({ member: schema }).required === undefined;
}
