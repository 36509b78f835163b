import { hash } from "node:crypto";
import { SegmentDamaged, type SegmentStorage } from "eventstore-lite/segments";
import { ServiceError } from "../../platform/service-error.ts";
import type { S3Address } from "./parse-address.ts";
import { readErrorCode, toStoreFault, OBJECT_BYTES_MAX, type S3Client, type S3Request } from "./client.ts";

/** Header with the hash of a file as it was written, which the object store keeps with the file. */
const HASH_HEADER = "x-amz-meta-sha256";

/**
 * Maximum number of pages of a store's listing, of mostly 1,000 names each. A store whose listing never ends is at
 * fault.
 */
const PAGES_MAX = 10_000;

/**
 * Creates a storage of files in an S3-compatible store, below one address. Names may have slashes. `read` throws {@link
 * SegmentDamaged} for an altered file; all methods throw a ServiceError (unavailable, configuration, rejected).
 */
export function createS3Storage(ask: S3Client, { bucket, prefix }: S3Address): SegmentStorage {
  const createRequest = (method: S3Request["method"], name: string): S3Request => ({
    method,
    bucket,
    key: prefix + name,
  });

  const read = async (name: string): Promise<Uint8Array | undefined> => {
    const request = createRequest("GET", name);
    const answer = await ask(request);
    if (answer.status === 404 && readErrorCode(answer) !== "NoSuchBucket") return undefined;
    if (answer.status !== 200) throw toStoreFault(request, answer);
    const { headers, bytes } = answer;
    if (headers.get(HASH_HEADER) === hash("sha256", bytes)) return bytes;
    throw new SegmentDamaged(`s3://${bucket}/${prefix}${name} is not as it was written: ${bytes.length} bytes`);
  };

  return {
    read,
    async list() {
      const names: string[] = [];
      let token: string | undefined;
      for (let page = 1; page <= PAGES_MAX; page++) {
        const more: Record<string, string> = token === undefined ? {} : { "continuation-token": token };
        const query = { "list-type": "2", "encoding-type": "url", prefix, ...more };
        const request = { ...createRequest("GET", ""), key: "", query };
        const answer = await ask(request);
        if (answer.status !== 200) throw toStoreFault(request, answer);
        const text = Buffer.from(answer.bytes).toString("utf8");
        for (const [, key = ""] of text.matchAll(/<Key>([^<]*)<\/Key>/g)) {
          names.push(decodeURIComponent(key.replaceAll("+", " ")).slice(prefix.length));
        }
        const [, next] = /<NextContinuationToken>([^<]+)<\/NextContinuationToken>/.exec(text) ?? [];
        token = next?.replaceAll("&amp;", "&");
        if (token !== undefined) continue;
        if (!text.includes("<IsTruncated>true</IsTruncated>")) return names.toSorted();
        throw new ServiceError(
          "rejected",
          `s3://${bucket}/${prefix}: its list is cut off, without a continuation token`,
        );
      }
      throw new ServiceError("rejected", `s3://${bucket}/${prefix}: its list has no end`);
    },
    async write(name, bytes) {
      if (bytes.length > OBJECT_BYTES_MAX) {
        throw new ServiceError(
          "invalid",
          `${name} has ${bytes.length} bytes: at most ${OBJECT_BYTES_MAX} are kept there`,
        );
      }
      const headers = { "if-none-match": "*", [HASH_HEADER]: hash("sha256", bytes) };
      const request = { ...createRequest("PUT", name), headers, body: bytes };
      const answer = await ask(request);
      if (answer.status === 200) return;
      if (answer.status !== 412) throw toStoreFault(request, answer);
      // The store also refuses if an earlier attempt stored the file and its answer was lost, so the stored file is
      // compared.
      const kept = await read(name);
      if (kept !== undefined && Buffer.compare(kept, bytes) === 0) return;
      throw new SegmentDamaged(`s3://${bucket}/${prefix}${name} is there with other bytes: move it away`);
    },
    async remove(name) {
      const request = createRequest("DELETE", name);
      const answer = await ask(request);
      if (answer.status !== 204 && answer.status !== 200 && answer.status !== 404) throw toStoreFault(request, answer);
    },
  };
}
