import { Type, type Static, type TObject, type TProperties } from "@sinclair/typebox";
import type { ReadResource } from "../../../events/access.ts";
import { closedObject } from "../../platform/common-schemas.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { readMember, type DeclaredRefusals, type Operation } from "../../platform/operation.ts";
import { fitting } from "./body.ts";
import { reply, route, type Access } from "./endpoint.ts";
import { declaredProblem } from "./problem.ts";
import { parseGiven, refuseQuery } from "./query.ts";

/** A request, as far as an operation that reads needs it. */
interface ReadRequest {
  /** Its query holds the members of the input that the path does not name. */
  readonly request: Request;
  /** The members that the path names. */
  readonly params: Readonly<Record<string, string>>;
}

/**
 * Returns handler and declaration of an operation that reads, for a route of Elysia's chain: its input is the path and the
 * query. `context` is called for each request, so a table of endpoints can be made without one. The handler throws the
 * problem 422 for an input that does not fit, and that of the refusal which the operation returns.
 */
export function serveRead<
  Context,
  Input extends TProperties,
  Output extends TProperties,
  Refusals extends DeclaredRefusals,
>(described: Operation<Context, Input, Output, Refusals>, context: () => Context) {
  const { id, tag, access, summary, description, personalRead, input, output, refusals } = described;
  const fit = fitting(closedObject(input));
  const handler = async ({ request, params }: ReadRequest): Promise<Static<TObject<Output>>> => {
    const texts = { ...Object.fromEntries(new URL(request.url).searchParams), ...params };
    const given = fit(readMembers(input, texts));
    const answer = await parseGiven(() => described.run(context(), given), refuseQuery);
    if (typeof answer !== "string") return answer;
    throw declaredProblem(answer, refusals![answer]!);
  };
  const declared = route(id, tag, access as unknown as Access, {
    response: { 200: reply("The answer.", Type.Object(output)) },
    summary,
    description,
    personalRead: personalRead as ReadResource | false,
    members: Object.fromEntries(
      Object.entries(input).map(([name, { description: about = "" }]) => [name, `${about}.`]),
    ),
    problems: ["invalid"],
    ...omitUndefined({ refusals }),
  });
  return [handler, declared] as const;
}

/** Reads the members that a query gives. Empty ones count as absent; unknown ones are left out, as on all paths. */
function readMembers(input: TProperties, texts: Readonly<Record<string, string>>): Record<string, unknown> {
  const known = Object.entries(input).filter(([name]) => (texts[name] ?? "") !== "");
  return Object.fromEntries(known.map(([name, schema]) => [name, readMember(schema, texts[name]!)]));
}
