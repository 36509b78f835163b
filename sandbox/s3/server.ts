import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { checkSignature, sha256, type Credentials, type SignatureFault } from "./signature.ts";

/** A fault for the next requests to the store that use this method. */
export interface S3Fault {
  readonly method: "GET" | "PUT" | "DELETE";
  /**
   * `slow_down` answers 503, `denied` 403, and `conflict` 409, as if another request changed the same object key.
   * `cut_before`, `cut_after` and `cut_body` close the connection before the request's effect, after it, or within the
   * answer's body.
   */
  readonly kind: "slow_down" | "cut_before" | "cut_after" | "cut_body" | "conflict" | "denied";
  count: number;
  /** Number of requests that still succeed before the fault; by default none does. */
  after?: number;
}

interface StoredObject {
  body: Buffer;
  /** Headers of the object whose names begin with `x-amz-meta-`. */
  readonly meta: Readonly<Record<string, string>>;
}

export interface S3Options {
  /** Maximum number of keys on a page of a list; AWS returns 1,000. */
  readonly pageKeys?: number;
  /** Clock for the check of signatures, in ms since the epoch. */
  readonly clock?: () => number;
  /**
   * Number of requests during which lists do not show a change, as in Swift or StorageGRID. By default they show it at
   * once, as in AWS. Reads and writes of one key are always consistent.
   */
  readonly listLag?: () => number;
}

/** Substitute for an S3-compatible store with one bucket, over real HTTP. */
export interface S3Sandbox extends AsyncDisposable {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly credentials: Credentials;
  /** Key -> the object that is stored under it. */
  readonly objects: Map<string, StoredObject>;
  readonly faults: S3Fault[];
  /** Requests that arrived, each as `METHOD key`. */
  readonly requests: string[];
  /**
   * Called with `METHOD key` of each request, before its effect and before its answer. The request waits until the
   * result resolves.
   */
  pause: (request: string, moment: "arrived" | "done") => Promise<void>;
}

const PAGE_KEYS = 1_000;

/** Credentials from AWS's documentation, which give access to nothing. */
const CREDENTIALS: Credentials = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};

export async function startS3(options: S3Options = {}): Promise<S3Sandbox> {
  const { pageKeys = PAGE_KEYS, clock = Date.now, listLag = () => 0 } = options;
  const server = createServer((incoming, response) => {
    void answer(incoming, response).catch((fault: unknown) => response.destroy(fault as Error));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", resolve);
  });
  const sandbox: S3Sandbox = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bucket: "reachlog-test",
    region: "eu-central-1",
    credentials: CREDENTIALS,
    objects: new Map(),
    faults: [],
    requests: [],
    pause: async () => {},
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };

  const unlisted = createUnlisted(sandbox, listLag);

  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const method = incoming.method ?? "";
    const [path = "", query = ""] = (incoming.url ?? "").split("?", 2);
    const [, bucket = "", ...parts] = path.split("/").map(decodeURIComponent);
    const key = parts.join("/");
    const request = `${method} ${key}`;
    sandbox.requests.push(request);
    const body = Buffer.concat(await Array.fromAsync(incoming as AsyncIterable<Buffer>));
    const headers = Object.fromEntries(
      Object.entries(incoming.headers).map(([name, value]) => [
        name,
        Array.isArray(value) ? value.join(",") : (value ?? ""),
      ]),
    );
    const { region, credentials } = sandbox;
    const refused = checkSignature({ method, path, query, headers }, credentials, { region, now: clock() });
    if (refused !== undefined) return refuse(response, STATUSES[refused], refused);
    if (headers["x-amz-content-sha256"] !== sha256(body)) return refuse(response, 400, "XAmzContentSHA256Mismatch");
    if (bucket !== sandbox.bucket) return refuse(response, 404, "NoSuchBucket");
    const fault = takeFault(sandbox.faults, method);
    if (fault === "slow_down") return refuse(response, 503, "SlowDown");
    if (fault === "conflict") return refuse(response, 409, "ConditionalRequestConflict");
    if (fault === "denied") return refuse(response, 403, "AccessDenied");
    if (fault === "cut_before") return void incoming.socket.destroy();
    await sandbox.pause(request, "arrived");
    const asked = { method, key, query: new URLSearchParams(query), headers, body };
    if (method !== "GET") unlisted.note(key);
    const isList = method === "GET" && key === "";
    const given = isList ? listKeys(unlisted.keys(), asked.query, pageKeys) : act(sandbox.objects, asked);
    await sandbox.pause(request, "done");
    if (fault === "cut_after") return void incoming.socket.destroy();
    response.writeHead(given.status, { ...given.headers, "content-length": given.body.length });
    if (fault !== "cut_body") return void response.end(given.body);
    response.write(given.body.subarray(0, given.body.length >> 1), () => incoming.socket.destroy());
  };
  return sandbox;
}

const STATUSES: Readonly<Record<SignatureFault, number>> = {
  AccessDenied: 403,
  InvalidAccessKeyId: 403,
  SignatureDoesNotMatch: 403,
  RequestTimeTooSkewed: 403,
  AuthorizationHeaderMalformed: 400,
};

function takeFault(faults: S3Fault[], method: string): S3Fault["kind"] | undefined {
  const fault = faults.find((one) => one.method === method && one.count > 0);
  if (fault === undefined) return undefined;
  if (fault.after !== undefined && fault.after-- > 0) return undefined;
  fault.count--;
  return fault.kind;
}

interface Given {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

interface Asked {
  readonly method: string;
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Creates the lists of keys. They show a change of an object only some requests later. */
function createUnlisted({ objects, requests }: S3Sandbox, listLag: () => number) {
  /**
   * Key of a changed object -> if lists still show the object, and the number of the request from which lists show the
   * change.
   */
  const lagging = new Map<string, { readonly isListed: boolean; readonly until: number }>();
  const isListed = (key: string): boolean => {
    const lag = lagging.get(key);
    return lag === undefined || requests.length >= lag.until ? objects.has(key) : lag.isListed;
  };
  return {
    /** Notes that a request is about to change the object under this key. */
    note(key: string): void {
      lagging.set(key, { isListed: isListed(key), until: requests.length + listLag() });
    },
    keys: (): string[] => [...new Set([...objects.keys(), ...lagging.keys()])].filter(isListed),
  };
}

function act(objects: Map<string, StoredObject>, { method, key, headers, body }: Asked): Given {
  const stored = objects.get(key);
  switch (method) {
    case "GET":
      return stored === undefined
        ? toError(404, "NoSuchKey")
        : { status: 200, headers: stored.meta, body: stored.body };
    case "PUT": {
      if (headers["if-none-match"] === "*" && stored !== undefined) return toError(412, "PreconditionFailed");
      const meta = Object.entries(headers).filter(([name]) => name.startsWith("x-amz-meta-"));
      objects.set(key, { body, meta: Object.fromEntries(meta) });
      return { status: 200, headers: {}, body: Buffer.alloc(0) };
    }
    case "DELETE":
      objects.delete(key);
      return { status: 204, headers: {}, body: Buffer.alloc(0) };
    default:
      return toError(405, "MethodNotAllowed");
  }
}

function listKeys(all: readonly string[], query: URLSearchParams, pageKeys: number): Given {
  const prefix = query.get("prefix") ?? "";
  const after = Buffer.from(query.get("continuation-token") ?? "", "base64").toString("utf8");
  const keys = all.filter((key) => key.startsWith(prefix) && key > after).toSorted();
  const page = keys.slice(0, pageKeys);
  const isTruncated = keys.length > page.length;
  const token = Buffer.from(page.at(-1) ?? "").toString("base64");
  const xml = [
    '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>',
    `<IsTruncated>${isTruncated}</IsTruncated>`,
    ...(isTruncated ? [`<NextContinuationToken>${token}</NextContinuationToken>`] : []),
    ...page.map((key) => `<Contents><Key>${encodeURIComponent(key).replaceAll("%2F", "/")}</Key></Contents>`),
    "</ListBucketResult>",
  ].join("");
  return { status: 200, headers: { "content-type": "application/xml" }, body: Buffer.from(xml) };
}

function toError(status: number, code: string): Given {
  const xml = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code></Error>`;
  return { status, headers: { "content-type": "application/xml" }, body: Buffer.from(xml) };
}

function refuse(response: ServerResponse, status: number, code: string): void {
  const { headers, body } = toError(status, code);
  response.writeHead(status, { ...headers, "content-length": body.length });
  response.end(body);
}
