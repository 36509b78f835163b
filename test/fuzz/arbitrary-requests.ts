import * as fc from "fast-check";
import { bodiesOf, type Body } from "./bodies.ts";
import type { Operation } from "./parse-openapi-operations.ts";

export interface FuzzRequest {
  readonly operation: Operation;
  /** Method of the request; undefined for the operation's method. */
  readonly method: string | undefined;
  readonly path: string;
  readonly host: string | undefined;
  readonly caller: "known" | "wrong" | "none";
  readonly headers: readonly string[];
  /** Content type of the request; undefined for the operation's content type. */
  readonly type: string | undefined;
  readonly body: Body | undefined;
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"];

const TYPES = [
  "text/plain",
  "application/json; charset=utf-8",
  "application/json; charset=x",
  "application/x-www-form-urlencoded",
  "a/b;c",
];

const HOSTS = ["evil.example", "x", "localhost", "LOCALHOST:1", "127.0.0.1:1:2", "[::1]"];

/** fast-check generator of header values: visible ASCII, blanks, and bytes above ASCII. */
const anyHeader = fc.stringMatching(/^[\x21-\x7e\xa1-\xff]([\x20-\x7e\xa1-\xff]{0,40}[\x21-\x7e])?$/);

const VALUES: Readonly<Record<string, fc.Arbitrary<string>>> = {
  "Idempotency-Key": fc.oneof(
    fc.uuid(),
    fc.constantFrom('"quoted key"', "a", "b", '"a"', '"', '""', "x".repeat(255), "x".repeat(256)),
    anyHeader,
  ),
  Prefer: fc.oneof(
    fc.constantFrom("wait=0", "wait=1", "respond-async, wait=1", "wait=x", "wait=-1", "wait"),
    anyHeader,
  ),
  Accept: fc.oneof(fc.constantFrom("application/json", "text/html", "*/*"), anyHeader),
};

/** fast-check generators of headers that the service reads, whether or not the operation declares them. */
const OTHERS: readonly fc.Arbitrary<string>[] = [
  fc
    .tuple(fc.constantFrom("X-Request-Id", "traceparent", "Cookie", "Origin", "X-Forwarded-For", "Referer"), anyHeader)
    .map(([name, value]) => `${name}: ${value}`),
  fc.constantFrom(
    "Cookie: reachlog_session=AAAA; reachlog_oauth=AAAA",
    "Content-Encoding: gzip",
    "Accept-Encoding: gzip",
    "Range: bytes=0-1",
    "If-None-Match: *",
  ),
  fc.constantFrom("traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "X-Request-Id: fuzz_1.a-b"),
  fc.tuple(fc.stringMatching(/^X-[A-Za-z0-9-]{1,20}$/), anyHeader).map(([name, value]) => `${name}: ${value}`),
];

function headersOf({ headers }: Operation): fc.Arbitrary<string[]> {
  const own = headers.map((name) => (VALUES[name] ?? anyHeader).map((value) => `${name}: ${value}`));
  const some = own.map((line) => fc.option(line, { nil: undefined, freq: 1 }));
  const others = fc.option(fc.oneof(...OTHERS), { nil: undefined, freq: 1 });
  return fc.tuple(...some, others).map((lines) => lines.filter((line) => line !== undefined));
}

/**
 * fast-check generator of values of a path parameter. Excludes `.` and `..`, because every URL parser resolves them.
 */
const segment = fc.oneof(
  fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 30 })
    .filter((text) => !/^\.\.?$/.test(text))
    .map(encodeURIComponent),
  fc.constantFrom("1", "@ada", "%", "%zz", "%E0%A4%A", "%2F", "%00", "a;b", "a=b&c"),
);

function pathsOf(operation: Operation): fc.Arbitrary<string> {
  const names = operation.parameters.map((name) => `{${name}}`);
  return fc.tuple(...names.map(() => segment)).chain((values) =>
    targetsOf(
      names.reduce((path, name, at) => path.replace(name, () => values[at] ?? ""), operation.path),
      operation.query,
    ),
  );
}

/** fast-check generator of paths with queries: those of an operation, or similar to them. */
function targetsOf(path: string, query: readonly string[]): fc.Arbitrary<string> {
  const name = query.length === 0 ? fc.string({ maxLength: 8 }) : fc.constantFrom(...query);
  const pairs = fc.array(fc.tuple(name, fc.string({ unit: "grapheme", maxLength: 30 })), { maxLength: 3 });
  const raw = fc.stringMatching(/^[!$-~]{0,40}$/);
  const asked = fc
    .oneof(
      pairs.map((each) => new URLSearchParams(each).toString()),
      raw,
    )
    .map((text) => `${path}?${text}`);
  const elsewhere = fc.oneof(
    fc.constantFrom(`${path}/`, `/${path}`, path.toUpperCase(), `${path}.json`, `${path}%00`, `${path};a`),
    fc.stringMatching(/^\/[A-Za-z0-9%._~-]{0,30}$/),
  );
  return fc.oneof(
    { weight: 8, arbitrary: fc.constant(path) },
    { weight: 4, arbitrary: asked },
    { weight: 1, arbitrary: elsewhere },
  );
}

const mostly = <T>(usual: T, others: readonly T[], freq: number): fc.Arbitrary<T> =>
  fc.oneof({ weight: freq, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...others) });

/**
 * fast-check generator of requests to all operations. Those with a body are more frequent, because their bodies are
 * checked.
 */
export function requestsTo(operations: readonly Operation[]): fc.Arbitrary<FuzzRequest> {
  return fc.oneof(
    ...operations.map((operation) => ({
      weight: operation.body === undefined ? 1 : 4,
      arbitrary: fc.record({
        operation: fc.constant(operation),
        method: mostly<string | undefined>(undefined, METHODS, 14),
        path: pathsOf(operation),
        host: mostly<string | undefined>(undefined, HOSTS, 40),
        caller: mostly<FuzzRequest["caller"]>("known", ["wrong", "none", "none"], 8),
        headers: headersOf(operation),
        type: mostly<string | undefined>(undefined, TYPES, 14),
        body: bodiesOf(operation),
      }),
    })),
  );
}
