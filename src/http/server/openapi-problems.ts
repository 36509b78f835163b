import { Type, type TSchema } from "@sinclair/typebox";
import { problems, type Problem, type ProblemName } from "./problem.ts";

/** What a problem of this name looks like; its words depend on the case. */
function sample(name: ProblemName): Problem {
  return (problems[name] as (...words: readonly unknown[]) => Problem)();
}

export interface DocumentedProblems {
  readonly status: number;
  readonly titles: readonly string[];
  /** That every such problem has. */
  readonly headers: readonly string[];
  /** That some of them have. */
  readonly optional: readonly string[];
  readonly schema: TSchema;
}

/** Some problems, by status, as RFC 9457 writes them. */
export function documented(names: readonly ProblemName[], limits: Limits): DocumentedProblems[] {
  const byStatus = new Map<number, Sample[]>();
  for (const name of names) {
    const problem = sample(name);
    const headers = [...Object.keys(problem.headers), ...(showsLimit(name, limits) ? LIMIT_HEADERS : [])];
    byStatus.set(problem.status, [...(byStatus.get(problem.status) ?? []), { problem, headers }]);
  }
  return [...byStatus].map(([status, group]) => ({
    status,
    titles: group.map(({ problem }) => problem.title),
    ...splitHeaders(group),
    schema: toSchema(
      status,
      group.map(({ problem }) => problem),
    ),
  }));
}

/** Limits that the answers of an operation show. */
export interface Limits {
  /** That of an address: only where callers without a token may ask, and not to those of this machine. */
  readonly ofAddress: boolean;
  /** The day's quota of messages. */
  readonly ofDay: boolean;
}

export const LIMIT_HEADERS = ["ratelimit", "ratelimit-policy"] as const;

/** Answered before it is known whether the caller has a limit. */
const BEFORE_CALLER: ReadonlySet<ProblemName> = new Set(["misdirected", "overloaded", "unauthorized", "foreignSite"]);

/** Answered before the handler is called, and the day's quota shown. */
const BEFORE_HANDLER: ReadonlySet<ProblemName> = new Set([
  ...BEFORE_CALLER,
  "tooMany",
  "tooLarge",
  "unsupportedType",
  "invalid",
]);

function showsLimit(name: ProblemName, { ofAddress, ofDay }: Limits): boolean {
  return (ofAddress && !BEFORE_CALLER.has(name)) || (ofDay && !BEFORE_HANDLER.has(name));
}

/** One problem, and the headers that it may have. */
interface Sample {
  readonly problem: Problem;
  readonly headers: readonly string[];
}

/** What a client may count on, and what else it may find. A limit may be none. */
function splitHeaders(group: readonly Sample[]): { readonly headers: string[]; readonly optional: string[] } {
  const all = [...new Set(group.flatMap(({ headers }) => headers))];
  const isSure = (name: string): boolean => group.every(({ problem }) => name in problem.headers);
  return { headers: all.filter(isSure), optional: all.filter((name) => !isSure(name)) };
}

const MORE: Readonly<Record<string, TSchema>> = {
  errors: Type.Array(Type.Object({ path: Type.String(), message: Type.String() })),
  run_id: Type.Union([Type.String({ format: "uuid" }), Type.Null()]),
};

/** What all problems have. */
export const problemSchema = Type.Object({
  type: Type.String({ format: "uri" }),
  title: Type.String(),
  status: Type.Integer(),
  detail: Type.String(),
  instance: Type.String({ description: "The request's id." }),
});

function toSchema(status: number, group: readonly Problem[]): TSchema {
  const more = new Set(group.flatMap((problem) => Object.keys(problem.more)));
  return Type.Object({
    ...problemSchema.properties,
    type: Type.Unsafe<string>({ enum: group.map(({ slug }) => `urn:reachlog:problem:${slug}`) }),
    status: Type.Literal(status),
    ...Object.fromEntries([...more].map((name) => [name, Type.Optional(MORE[name] ?? Type.Unknown())])),
  });
}
