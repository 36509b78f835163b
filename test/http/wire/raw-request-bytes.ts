export interface Sent {
  readonly method?: string;
  readonly path?: string;
  /** Header lines of the request, in order. `Host` is added first unless it is present. */
  readonly headers?: readonly string[];
  /** Body of the request. `Content-Length` is added unless the headers contain a length or an encoding. */
  readonly body?: string | Uint8Array;
}

/** Returns the bytes of a request. Nothing is checked or escaped, so that a test can send an invalid one. */
export function requestBytes(url: string, { method = "GET", path = "/", headers = [], body }: Sent): Buffer {
  const host = headers.some((line) => /^host\s*:/i.test(line)) ? [] : [`Host: ${new URL(url).host}`];
  const framed = headers.some((line) => /^(content-length|transfer-encoding)\s*:/i.test(line));
  const content = Buffer.from(body ?? "");
  const length = body === undefined || framed ? [] : [`Content-Length: ${content.length}`];
  const head = [`${method} ${path} HTTP/1.1`, ...host, ...headers, ...length, "", ""].join("\r\n");
  return Buffer.concat([Buffer.from(head, "latin1"), content]);
}

export const JSON_TYPE = "Content-Type: application/json";
