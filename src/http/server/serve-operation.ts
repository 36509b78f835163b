import { Type, type Static, type TObject, type TProperties } from "@sinclair/typebox";
import { status, type ElysiaCustomStatusResponse } from "elysia";
import type { ReadResource } from "../../../events/authentication-keys-and-data-reads.ts";
import { closedObject } from "../../platform/common-schemas.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import {
  itemSchema,
  readMember,
  readRefusal,
  type DeclaredRefusals,
  type Operation,
} from "../../platform/operation.ts";
import { attachment, whole } from "./http-response.ts";
import { fitting, objectBody, type Fields } from "./body.ts";
import { reply, route, type Access, type Reply, type RequestContext } from "./endpoint.ts";
import { leaveOutEmpty } from "./form-routes.ts";
import { appendedOrNothing, declaredProblem, problems } from "./problem.ts";
import { choiceIn, parseGiven, refuseQuery } from "./refuse-invalid-query.ts";

/** Arguments of the handler of an operation that reads. */
interface ReadRequest {
  /** The HTTP request; its query holds the members of the input. */
  readonly request: Request;
  readonly call: RequestContext;
}

/**
 * Creates handler and declaration of a GET route for an operation that reads; the query is its input. The handler
 * throws the problem 422 for an invalid input, and the problem of a refusal that the operation returns.
 */
export function serveRead<
  Context,
  Input extends TProperties,
  Output extends TProperties,
  Refusals extends DeclaredRefusals,
>(
  described: Operation<Context, Input, Output, Refusals>,
  /**
   * Returns the context in which the operation runs. It is called at each request only, so that endpoints can be listed
   * without a service.
   */
  context: () => Context,
  /** Runs the operation. Some callers pass a function that refuses the operation while another one is in progress. */
  take = <T>(work: () => Promise<T>): Promise<T> => work(),
) {
  const { name, input, csv } = described;
  const fit = fitting(closedObject(input));
  const handler = async ({ request, call }: ReadRequest): Promise<Static<TObject<Output>>> => {
    const { searchParams } = new URL(request.url);
    const given = fit(readMembers(input, searchParams));
    const isCsv = csv !== undefined && wantsCsv(request, searchParams);
    const running = context();
    const found = await take(() => parseGiven(() => described.run(running, given, call.metadata), refuseQuery));
    throwRefusal(described, found);
    const answer = found as Static<TObject<Output>>;
    call.disclosed = described.discloses?.(answer, given, running);
    if (!isCsv) return answer;
    const headers = attachment("text/csv; charset=utf-8", `reachlog-${name.replaceAll(" ", "-")}.csv`);
    return whole({ status: 200, headers, body: csv(answer, given) }, answer) as never;
  };
  const members = Object.fromEntries(
    Object.entries(input).map(([name, { description: about = "" }]) => [name, `${about}.`]),
  );
  const shown = csv === undefined ? { members } : { members: { ...members, ...CSV_MEMBER }, ...CSV_HEADERS };
  return [handler, declareOperation(described, { ...shown, problems: ["invalid"] as const }, 200)] as const;
}

const CSV_MEMBER = { format: "`json` or `csv`. Default: by `Accept`." };
const CSV_HEADERS = { requestHeaders: ["Accept"] } as const;

/** True if the caller asks for CSV, by `format` or `Accept`. Throws the problem 422 for an unknown format. */
function wantsCsv({ headers }: Request, query: URLSearchParams): boolean {
  const accepted = headers.get("accept")?.includes("text/csv") === true ? "csv" : "json";
  return choiceIn(query, "format", ["json", "csv"], accepted) === "csv";
}

/** Arguments of the handler of an operation that writes. */
interface WriteRequest<Input extends TProperties> {
  readonly body: Static<TObject<Input>>;
  readonly call: RequestContext;
}

interface WriteOptions<Status extends 200 | 202> {
  /** Status of a successful answer: 200 (default), or 202 if the work only begins. */
  readonly status?: Status;
  /** Adds a console form that performs the operation. */
  readonly form?: {
    /** Path of the form. Default: `/console/`, followed by the words of the operation's name. */
    readonly path?: `/console/${string}`;
    /**
     * Converts the form's fields to the operation's input. Default: the fields that are not empty, each converted as
     * its schema requires. Throws problems.
     */
    readonly body?: (fields: Fields) => unknown;
    /**
     * Returns the name of what the answer's `notes` warn about. If given, the page shows each note as a bar, instead of
     * in the sentence.
     */
    readonly warnsAbout?: (answer: never) => string;
  };
  /**
   * Waits for the operation and converts faults of the log to problems. The default is for operations whose first act
   * is an append.
   */
  readonly guard?: typeof appendedOrNothing;
}

/**
 * Creates handler and declaration of a POST route for an operation that writes; the body is its input. Its events name
 * the request's caller. If the service stops, `stopping` aborts.
 */
export function serveWrite<
  Context,
  Input extends TProperties,
  Output extends TProperties,
  Refusals extends DeclaredRefusals,
  Status extends 200 | 202 = 200,
>(
  described: Operation<Context, Input, Output, Refusals>,
  context: () => Context & { readonly stopping: AbortSignal },
  { form, guard = appendedOrNothing, status: code = 200 as Status }: WriteOptions<Status> = {},
) {
  type Answer = Static<TObject<Output>>;
  const handler = async ({ body, call }: WriteRequest<Input>): Promise<ElysiaCustomStatusResponse<Status, Answer>> => {
    const running = context();
    const { stopping } = running;
    const work = parseGiven(() => described.run(running, body, call.metadata), refuseBody);
    const found = await guard(work).catch((fault: unknown) => {
      throw stopping.aborted && fault === stopping.reason ? problems.logUnavailable(true) : fault;
    });
    throwRefusal(described, found);
    const answer = found as Answer;
    call.disclosed = described.discloses?.(answer, body, running);
    return status(code, answer) as never;
  };
  const toForm = ({
    path = `/console/${described.name.replaceAll(" ", "/")}`,
    body,
    warnsAbout,
  }: NonNullable<typeof form>) => ({
    path,
    body: body ?? ((fields: Fields) => readFields(described.input, leaveOutEmpty(fields))),
    notice(answer: never, fields: Fields) {
      const { notes = [] }: { readonly notes?: readonly string[] } = warnsAbout === undefined ? {} : answer;
      const said: Answer = warnsAbout === undefined ? answer : Object.assign({}, answer, { notes: [] });
      const warnings = notes.map((note) => `${warnsAbout?.(answer)}: ${note}`);
      return { text: described.text(said, fields as Static<TObject<Input>>), isFault: false, warnings };
    },
  });
  const more = omitUndefined({ form: form && toForm(form) });
  const declared = declareOperation(described, more, code);
  return [handler, { ...declared, body: objectBody(described.input) }] as const;
}

const refuseBody = (message: string) => problems.invalid([{ path: "", message }]);

/** Throws the problem for an operation's result if the result is a refusal. */
function throwRefusal({ refusals }: { readonly refusals?: DeclaredRefusals }, found: string | object): void {
  const refused = readRefusal(refusals, found);
  if (refused !== undefined) throw declaredProblem(refused);
}

type Declared = Omit<Parameters<typeof route>[3], "response" | "summary" | "description" | "body">;

function declareOperation<
  Context,
  Input extends TProperties,
  Output extends TProperties,
  Refusals extends DeclaredRefusals,
  Status extends 200 | 202,
>(
  {
    id,
    tag,
    access,
    summary,
    description,
    personalRead,
    output,
    refusals,
    csv,
    isSlow,
  }: Operation<Context, Input, Output, Refusals>,
  more: Declared,
  status: Status,
) {
  return route(id, tag, access as unknown as Access, {
    response: {
      [status]: {
        ...reply("The answer.", Type.Object(output)),
        ...(csv === undefined ? {} : { otherMediaTypes: ["text/csv"] }),
      },
    } as Record<Status, Reply<Static<TObject<Output>>>>,
    summary,
    description,
    personalRead: personalRead as ReadResource | false,
    ...omitUndefined({ refusals, isSlow }),
    ...more,
  });
}

/**
 * Converts the fields of a form to members of the operation's input. In the field of a list, spaces separate its
 * entries. Unknown fields are kept, so that the check of the input refuses them.
 */
function readFields(input: TProperties, fields: Fields): object {
  const members = Object.entries(fields).map(([name, text]) => {
    const schema = input[name];
    const item = schema && itemSchema(schema);
    if (schema === undefined) return [name, text];
    return [name, item === undefined ? readMember(schema, text) : text.split(" ").map((one) => readMember(item, one))];
  });
  return Object.fromEntries(members) as object;
}

/**
 * Reads the members of the operation's input from a query. Empty ones count as absent; unknown ones are ignored, as by
 * all endpoints.
 */
function readMembers(input: TProperties, query: URLSearchParams): Record<string, unknown> {
  const members = Object.entries(input).flatMap(([name, schema]) => {
    const texts = query.getAll(name).filter((text) => text !== "");
    const [last] = texts.slice(-1);
    if (last === undefined) return [];
    const item = itemSchema(schema);
    return [[name, item === undefined ? readMember(schema, last) : texts.map((text) => readMember(item, text))]];
  });
  return Object.fromEntries(members) as Record<string, unknown>;
}
