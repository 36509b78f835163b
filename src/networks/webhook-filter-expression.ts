import { compile, TreeInterpreter } from "@jmespath-community/jmespath";
import type { Recorded } from "../../events/event-types-and-codec.ts";

/**
 * Maximum number of characters of a webhook's event filter, enough for a dozen comparisons. A filter is parsed once,
 * and evaluated for each event.
 */
export const FILTER_CHARS_MAX = 1_000;

/**
 * Maximum number of nodes that a filter may evaluate for one event. An outcome of a thousand requests takes some 8,000,
 * in 10 ms; lists within lists would block the thread that answers requests for seconds.
 */
export const STEPS_MAX = 20_000;

/**
 * Number of characters of a text that cost as much as one evaluation step when a function or a slice of a filter makes
 * the text.
 */
const CHARACTERS_PER_STEP = 256;
const ELEMENTS_PER_STEP = 16;

/** The content that a webhook posts, over which its filter is evaluated. */
export interface PostedEvent {
  readonly type: string;
  /** Time of the event, in ISO 8601. */
  readonly timestamp: string;
  /**
   * The members of an event that webhooks post. They are listed here, so that a member which events get in a later
   * version is not posted unnoticed.
   */
  readonly data: Pick<Recorded, "position" | "id" | "stream" | "version" | "type" | "time" | "data" | "meta" | "hash">;
}

/**
 * Function that is true if a webhook posts the event. Throws {@link FilterFailed} if the filter cannot be evaluated for
 * it.
 */
export type EventFilter = (event: PostedEvent) => boolean;

/**
 * Thrown for a filter that is not valid JMESPath, or uses a feature that filters do not support. The message says what
 * is wrong, and where.
 */
export class FilterRefused extends Error {
  override readonly name = "FilterRefused";
}

/**
 * Thrown if a filter cannot be evaluated for an event. The message names types and functions, and no value of the
 * event.
 */
export class FilterFailed extends Error {
  override readonly name = "FilterFailed";
}

type Expression = ReturnType<typeof compile>;

/**
 * Compiles a webhook's filter, a JMESPath expression (https://jmespath.org/specification.html). It selects an event if
 * its result is true: not `null`, `false` or empty. Throws {@link FilterRefused}.
 */
export function compileFilter(expression: string): EventFilter {
  if (expression.length > FILTER_CHARS_MAX) {
    throw new FilterRefused(`it has ${expression.length} characters, and ${FILTER_CHARS_MAX} are allowed`);
  }
  const parsed = parse(expression);
  const refused = findRefused(parsed);
  if (refused !== undefined) throw new FilterRefused(refused);
  const negated: Expression = { type: "NotExpression", child: parsed };
  return (event) => {
    try {
      return createInterpreter().search(negated, event as never) === false;
    } catch (fault) {
      throw new FilterFailed(fault instanceof Error ? fault.message : "an unknown fault");
    }
  };
}

/** Creates a JMESPath interpreter for one event, which throws after {@link STEPS_MAX} steps. */
function createInterpreter(): typeof TreeInterpreter {
  let steps = 0;
  const bounded: typeof TreeInterpreter = Object.create(TreeInterpreter);
  bounded.visit = (node, value) => {
    steps++;
    if (steps > STEPS_MAX) throw new Error(`it takes more than ${STEPS_MAX} steps`);
    const result = TreeInterpreter.visit.call(bounded, node, value);
    if (typeof result === "string") steps += Math.floor(result.length / CHARACTERS_PER_STEP);
    else if (Array.isArray(result)) steps += Math.floor(result.length / ELEMENTS_PER_STEP);
    return result;
  };
  return bounded;
}

/** Matches the texts and literals of an expression, with their quotes. */
const QUOTED = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`/gs;

function parse(expression: string): Expression {
  // Refuses an expression with an unclosed quote before the JMESPath library compiles it, because the library accepts
  // such an expression.
  const open = expression.replace(QUOTED, (quoted) => " ".repeat(quoted.length)).search(/['"`]/);
  if (open >= 0) throw new FilterRefused(`not valid JMESPath from character ${open + 1} on: a quote has no end`);
  try {
    return compile(expression);
  } catch (fault) {
    const place = understoodUpTo(expression);
    const said = fault instanceof Error ? fault.message : "no expression";
    throw new FilterRefused(`not valid JMESPath from character ${place + 1} on: ${said}`);
  }
}

/**
 * Returns the length of the longest beginning of a faulty filter that is a valid expression by itself. The error
 * follows it, and the library does not say where.
 */
function understoodUpTo(expression: string): number {
  for (let length = expression.length - 1; length > 0; length--) {
    try {
      compile(expression.slice(0, length));
      return expression.slice(0, length).trimEnd().length;
    } catch {
      continue;
    }
  }
  return 0;
}

/**
 * Node types that a filter may use: each reads a part of the event and makes nothing larger. Multiselects, variables
 * and the root are left out, because they let an expression multiply its input.
 */
const NODES: ReadonlySet<string> = new Set([
  "Field",
  "Subexpression",
  "Index",
  "IndexExpression",
  "Slice",
  "Projection",
  "ValueProjection",
  "FilterProjection",
  "Flatten",
  "Pipe",
  "Comparator",
  "AndExpression",
  "OrExpression",
  "NotExpression",
  "Identity",
  "Current",
  "Literal",
  "Function",
]);

/** Functions that filters support, with the number of their arguments. */
const FUNCTIONS: ReadonlyMap<string, number> = new Map([
  ["contains", 2],
  ["ends_with", 2],
  ["keys", 1],
  ["length", 1],
  ["lower", 1],
  ["starts_with", 2],
  ["to_number", 1],
  ["to_string", 1],
  ["type", 1],
  ["upper", 1],
  ["values", 1],
]);

/** Describes the first part of a filter that filters may not use; undefined if all of it is allowed. */
function findRefused(node: unknown): string | undefined {
  if (Array.isArray(node)) return node.map(findRefused).find((refused) => refused !== undefined);
  if (typeof node !== "object" || node === null || !("type" in node)) return undefined;
  const { type, ...parts } = node as Node;
  if (!NODES.has(type)) return `a filter cannot use ${type}`;
  if (type === "Literal") return undefined;
  // `!a.b` means `(!a).b`, which reads a member of true or false. These have none, so the filter would select no event.
  if (isNegation(parts.left ?? parts.child) && READING.has(type))
    return "! binds tighter than what follows: write !(…)";
  return (type === "Function" ? findWrongCall(parts) : undefined) ?? findRefused(Object.values(parts));
}

/** Node types that read a part of their left side. */
const READING: ReadonlySet<string> = new Set([
  "Subexpression",
  "IndexExpression",
  "Projection",
  "ValueProjection",
  "FilterProjection",
  "Flatten",
]);

function isNegation(node: unknown): boolean {
  return typeof node === "object" && node !== null && "type" in node && node.type === "NotExpression";
}

interface Node {
  readonly type: string;
  readonly left?: unknown;
  readonly child?: unknown;
  /** Name of the function that the node calls; absent for other nodes. */
  readonly name?: string;
  readonly children?: readonly unknown[];
}

function findWrongCall({ name = "", children = [] }: Omit<Node, "type">): string | undefined {
  const count = FUNCTIONS.get(name);
  if (count === undefined) return `filters have no function ${name}(); they have ${[...FUNCTIONS.keys()].join(", ")}`;
  return children.length === count ? undefined : `${name}() takes ${count} ${count === 1 ? "argument" : "arguments"}`;
}
