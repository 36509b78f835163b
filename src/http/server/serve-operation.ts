import { Type, type Static, type TObject, type TProperties } from "@sinclair/typebox";
import type { ReadResource } from "../../../events/access.ts";
import { closedObject } from "../../platform/common-schemas.ts";
import { readMember, type Operation } from "../../platform/operation.ts";
import { fitting } from "./body.ts";
import { reply, route, type Access } from "./endpoint.ts";
import { parseGiven, refuseQuery } from "./query.ts";

/** A request, as far as an operation that reads needs it. */
interface ReadRequest {
  readonly request: Request;
  readonly params: Readonly<Record<string, string>>;
}

/**
 * Returns handler and declaration of an operation that reads, for a route of Elysia's chain: its input is the path and the
 * query. `context` is called for each request, so a table of endpoints can be made without one.
 */
export function serveRead<Context, Input extends TProperties, Output extends TProperties>(
  described: Operation<Context, Input, Output>,
  context: () => Context,
) {
  const { id, tag, access, summary, description, personalRead, input, output } = described;
  const fit = fitting(closedObject(input));
  const handler = ({ request, params }: ReadRequest): Promise<Static<TObject<Output>>> => {
    const texts = { ...Object.fromEntries(new URL(request.url).searchParams), ...params };
    return parseGiven(() => described.run(context(), fit(readMembers(input, texts))), refuseQuery);
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
  });
  return [handler, declared] as const;
}

/** Reads the members that a query gives. Empty ones count as absent; unknown ones are left out, as on all paths. */
function readMembers(input: TProperties, texts: Readonly<Record<string, string>>): Record<string, unknown> {
  const known = Object.entries(input).filter(([name]) => (texts[name] ?? "") !== "");
  return Object.fromEntries(known.map(([name, schema]) => [name, readMember(schema, texts[name]!)]));
}
