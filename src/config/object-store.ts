import type { S3Access } from "../networks/s3/client.ts";
import { secret } from "../platform/secret.ts";
import { requireAllOrNone, type RawEnvironment } from "./environment.ts";
import type { Report } from "./error.ts";
import type { Environment } from "./schema.ts";
import { readUrl } from "./urls.ts";

/** The access to an S3-compatible store; undefined: not configured. */
export function readObjectStore(values: Environment, env: RawEnvironment, report: Report): S3Access | undefined {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: key, AWS_REGION: region } = values;
  requireAllOrNone(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"], env, report);
  const endpoint = readUrl("AWS_ENDPOINT_URL", values.AWS_ENDPOINT_URL ?? `https://s3.${region}.amazonaws.com`, report);
  if (accessKeyId === undefined || key === undefined) return undefined;
  return { endpoint, region, accessKeyId, secretAccessKey: secret(key) };
}
