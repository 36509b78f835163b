import { Type, type TSchema } from "@sinclair/typebox";
import { problems, type Problem } from "../problem.ts";

type Name = keyof typeof problems;

/** What a problem of this name looks like; its words depend on the case. */
function sample(name: Name): Problem {
  return (problems[name] as (...words: readonly unknown[]) => Problem)();
}

export interface DocumentedProblems {
  readonly status: number;
  readonly titles: readonly string[];
  readonly headers: readonly string[];
  readonly schema: TSchema;
}

/** Some problems, by status, as RFC 9457 writes them. */
export function documented(names: readonly Name[]): DocumentedProblems[] {
  const byStatus = new Map<number, Problem[]>();
  for (const problem of names.map(sample)) {
    byStatus.set(problem.status, [...(byStatus.get(problem.status) ?? []), problem]);
  }
  return [...byStatus].map(([status, group]) => ({
    status,
    titles: group.map(({ title }) => title),
    headers: headersOfAll(group),
    schema: schemaOf(status, group),
  }));
}

/** What a client may count on: the headers of every problem of this status. */
function headersOfAll(group: readonly Problem[]): string[] {
  const [first, ...others] = group.map(({ headers }) => Object.keys(headers));
  return (first ?? []).filter((name) => others.every((names) => names.includes(name)));
}

const MORE: Readonly<Record<string, TSchema>> = {
  errors: Type.Array(Type.Object({ path: Type.String(), message: Type.String() })),
  run_id: Type.Union([Type.String({ format: "uuid" }), Type.Null()]),
};

function schemaOf(status: number, group: readonly Problem[]): TSchema {
  const more = new Set(group.flatMap((problem) => Object.keys(problem.more)));
  return Type.Object({
    type: Type.Unsafe<string>({ enum: group.map(({ slug }) => `urn:reachlog:problem:${slug}`) }),
    title: Type.String(),
    status: Type.Literal(status),
    detail: Type.String(),
    instance: Type.String({ description: "The request's id." }),
    ...Object.fromEntries([...more].map((name) => [name, Type.Optional(MORE[name] ?? Type.Unknown())])),
  });
}
