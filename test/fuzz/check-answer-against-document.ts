import type { WireAnswer } from "../http/wire/parse-http-answers.ts";
import { BODY_BYTES_MAX } from "../../src/http/server/body.ts";
import { misfits } from "./match-schema.ts";
import { isAt, type DocumentedAnswer, type Operation, type Schema } from "./parse-openapi-operations.ts";
import type { FuzzRequest } from "./arbitrary-requests.ts";

/** Pattern of hosts that are not this machine's. */
const FOREIGN = /^(evil\.example|x|127\.0\.0\.1:1:2)$/;

/**
 * Statuses of answers that say that a network, the load or the log is at fault. A 500 is documented too, but always
 * counts as a defect.
 */
const GATEWAY: ReadonlySet<number> = new Set([502, 503, 504]);

/** Schema of a problem that no operation documents. */
const ANY_PROBLEM: Schema = {
  type: "object",
  properties: {
    type: { type: "string", pattern: "^urn:reachlog:problem:[a-z-]+$" },
    title: { type: "string", minLength: 1 },
    status: { type: "integer" },
    detail: { type: "string", minLength: 1 },
    instance: { type: "string", minLength: 1 },
  },
  required: ["type", "title", "status", "detail", "instance"],
};

/** Content type of a refusal -> its schema. A program gets a problem in JSON, a browser gets a page. */
const ANY_REFUSAL: ReadonlyMap<string, Schema> = new Map([
  ["application/problem+json", ANY_PROBLEM],
  ["text/html", { type: "string" }],
]);

/** Returns what is wrong with an answer, judged by the OpenAPI document. */
export function faultsOf(request: FuzzRequest, answer: WireAnswer, operations: readonly Operation[]): string[] {
  const { status } = answer;
  if (status >= 500 && !GATEWAY.has(status)) return [`a ${status}`];
  const path = new URL(`http://127.0.0.1${request.path}`).pathname;
  const method = request.method ?? request.operation.method;
  const found = operations.filter((each) => isAt(each, path));
  // The service ignores surplus slashes in a path.
  const plain = path.replace(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
  const alike = found.length > 0 ? found : operations.filter((each) => isAt(each, plain));
  // OpenAPI matches a concrete path before one with parameters.
  const concrete = alike.filter((each) => !each.path.includes("{"));
  const here = concrete.length > 0 ? concrete : alike;
  const isForeign = request.host !== undefined && FOREIGN.test(request.host);
  if (isForeign && !here.some(({ answers }) => !answers.has(421))) return undocumented(answer, 421, method);
  if (here.length === 0) return undocumented(answer, 404, method);
  const operation = here.find((each) => each.method === method || (method === "HEAD" && each.method === "GET"));
  if (operation === undefined) return undocumented(answer, 405, method);
  const documented = operation.answers.get(status);
  if (documented === undefined) return [`the status ${status} is not documented`];
  return [...againstDocument(documented, answer, method), ...againstBody(request, operation, answer)];
}

function undocumented(answer: WireAnswer, status: number, method: string): string[] {
  if (answer.status !== status) return [`${answer.status} in place of ${status}`];
  if (status === 405 && answer.headers.get("allow") === undefined) return ["no Allow"];
  return againstDocument(
    { headers: ["x-request-id"], optional: [], foreign: [], content: ANY_REFUSAL },
    answer,
    method,
  );
}

function againstDocument(
  { headers, foreign, content }: DocumentedAnswer,
  answer: WireAnswer,
  method: string,
): string[] {
  const missing = [
    ...headers.filter((name) => !answer.headers.has(name)).map((name) => `no header ${name}`),
    ...foreign.filter((name) => answer.headers.has(name)).map((name) => `the header ${name} is not documented`),
  ];
  const type = answer.headers.get("content-type")?.[0]?.split(";")[0];
  if (content.size === 0) return answer.body === "" ? missing : [...missing, "a body that is not documented"];
  const schema = type === undefined ? undefined : content.get(type);
  if (schema === undefined) return [...missing, `${answer.status} of the type ${type}`];
  if (method === "HEAD") return missing;
  const value: unknown = isJson(type) ? JSON.parse(answer.body) : answer.body;
  return [...missing, ...misfits(schema, value)];
}

/**
 * True if the content type is JSON whose schema the document describes. It describes none for the lines of JSON Lines.
 */
function isJson(type: string | undefined): boolean {
  return type?.endsWith("json") === true && type !== "application/x-ndjson";
}

/** Statuses with which the service refuses the content of a request. Other refusals depend on the service's state. */
const REFUSED: ReadonlySet<number> = new Set([400, 413, 415, 422]);

/** Types of the problems about rules that no schema can express, such as that a time must not be in the future. */
const OF_ITS_MEANING = ["audience", "campaign", "consent", "conversion", "filter", "rules", "selection"].map(
  (what) => `urn:reachlog:problem:unusable-${what}`,
);

/**
 * Pattern of errors about members that exclude each other in a decision about dead letters: it either names letters or
 * is about all of them. No schema expresses that.
 */
const OF_A_DECISION =
  /^(?:give either (?:event_ids|recipients) or all|\w+ needs all|status in_doubt needs one of event_ids, .*)$/;

function isOfItsMeaning({ body }: WireAnswer, path: string): boolean {
  const { type = "", errors = [] } = JSON.parse(body) as { type?: string; errors?: { message: string }[] };
  const isDecision = /^\/(?:api\/deliveries\/(?:retry|discard|settle)|social\/settle)$/.test(path);
  if (isDecision && errors.length === 1 && OF_A_DECISION.test(errors[0]!.message)) return true;
  return OF_ITS_MEANING.includes(type);
}

/**
 * Returns the faults of an answer, judged by the request's body: the service must accept a body that is valid by the
 * document and refuse any other.
 */
function againstBody(request: FuzzRequest, operation: Operation, answer: WireAnswer): string[] {
  const { body, headers, type } = request;
  if (body === undefined || body.verdict === "unknown" || operation !== request.operation) return [];
  if (body.verdict === "unfit") return answer.status < 300 ? [`${answer.status} for what does not fit`] : [];
  // A body whose members all have texts of the full length may exceed the size limit of bodies.
  if (answer.status === 413 && body.bytes.length > BODY_BYTES_MAX) return [];
  const isPlain = type === undefined && !headers.some((line) => /^(idempotency-key|content-encoding):/i.test(line));
  return isPlain && REFUSED.has(answer.status) && !isOfItsMeaning(answer, operation.path)
    ? [`${answer.status} for what fits`]
    : [];
}
