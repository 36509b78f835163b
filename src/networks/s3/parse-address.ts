// Parses addresses of the form `s3://BUCKET/PREFIX` in settings and options. It builds no URLs of requests.
export interface S3Address {
  readonly bucket: string;
  /** Beginning of the names of all objects at this address: empty, or with a slash at its end. */
  readonly prefix: string;
}

/** Matches an S3 address: a bucket's name, and a prefix of characters that no URL encodes. */
const ADDRESS = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([A-Za-z0-9._/-]*))?$/;

/** Matches parts of a path that a URL drops, so that the address would lead to another place than it says. */
const DROPPED_PART = /(?:^|\/)(?:\.{0,2})(?:\/|$)/;

export function isS3Address(text: string): boolean {
  return text.startsWith("s3://");
}

/** Parses an address `s3://BUCKET/PREFIX`. Undefined if it is not such an address. */
export function parseS3Address(text: string): S3Address | undefined {
  const [, bucket, path = ""] = ADDRESS.exec(text) ?? [];
  if (bucket === undefined) return undefined;
  const prefix = path.replace(/\/$/, "");
  if (prefix === "") return { bucket, prefix };
  return DROPPED_PART.test(prefix) ? undefined : { bucket, prefix: `${prefix}/` };
}
