import { everyOperation, type Operation } from "../fuzz/parse-openapi-operations.ts";

/** Credentials of a caller: an API token, and the session of a signed-in browser. */
export interface Caller {
  readonly token: string;
  readonly cookie: string;
  /** Token in the console's forms, which the service issued to this browser's session. */
  readonly formToken: string;
}

interface Init extends RequestInit {
  readonly headers: Readonly<Record<string, string>>;
}

export interface OneRequest {
  readonly path: string;
  readonly init: Init;
}

/** Values that the requests have in place of a path's parameters; a parameter that is not listed here gets 1. */
const PARAMETERS: Readonly<Record<string, string>> = {
  event: "1",
  position: "1",
  domain: "go.example",
  short_code: "spring",
  code: "spring",
  id: "sara_sells",
};
/** Query parameters of console pages, with example values: a search, and a page as of an earlier position. */
const QUERIES = { q: "?q=sara_sells", as_of: "?as_of=1" };

/** Fields that are sent with every form of the console. A form ignores the fields that only other forms have. */
const FIELDS: Readonly<Record<string, string>> = {
  back: "/people",
  token: "not-a-token",
  channel: "chat",
  recipient: "sara_sells",
  ip: "192.0.2.1",
  until_position: "1",
  why: "over",
};

/** Returns the hidden form token in a console page's HTML; empty if there is none. */
export function formTokenIn(page: string): string {
  return /name="form_token" value="([^"]+)"/.exec(page)?.[1] ?? "";
}

/**
 * Builds one request for each operation of an OpenAPI document, with the document's example as the body. A page is
 * requested once more with each query in QUERIES that it supports.
 */
export function oneOfEach(document: string, caller: Caller): readonly OneRequest[] {
  return everyOperation(document).flatMap((operation) => {
    const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => PARAMETERS[name] ?? "1");
    const init = operation.method === "GET" ? reading(caller) : posting(operation, caller);
    const queries = Object.entries(QUERIES).flatMap(([name, query]) => (operation.query.includes(name) ? [query] : []));
    return ["", ...queries].map((query) => ({ path: path + query, init }));
  });
}

function reading({ token, cookie }: Caller): Init {
  return { headers: { authorization: `Bearer ${token}`, cookie, accept: "text/html" } };
}

function posting({ method, body: { type, schema, example } = NO_BODY }: Operation, caller: Caller): Init {
  const { token, cookie, formToken } = caller;
  if (type.startsWith("application/json")) {
    const headers = { authorization: `Bearer ${token}`, "content-type": type };
    return { method, headers, body: JSON.stringify(example) };
  }
  if (type.startsWith("text/")) {
    return {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": type },
      body: String(schema.examples?.[0]),
    };
  }
  const fields = Object.entries({ ...FIELDS, form_token: formToken }).filter(
    ([name]) => schema.allOf !== undefined || name in (schema.properties ?? {}),
  );
  if (type !== "multipart/form-data") return { method, headers: { cookie }, body: new URLSearchParams(fields) };
  const form = new FormData();
  for (const [name, value] of fields) form.set(name, value);
  form.set("file", new File(["username\nsara_sells\n"], "people.csv"));
  return { method, headers: { cookie }, body: form };
}

const NO_BODY: NonNullable<Operation["body"]> = { type: "application/json", schema: {}, example: {} };
