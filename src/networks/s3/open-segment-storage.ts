import { createSegmentFolder, type SegmentStorage } from "eventstore-lite/segments";
import { createObjectFetch } from "../safe-fetch.ts";
import { isS3Address, parseS3Address } from "./parse-address.ts";
import { createS3Client, type S3Access, type S3Deps } from "./client.ts";
import { createS3Storage } from "./s3-segment-storage.ts";
import { sleep, systemClock } from "../../platform/clock-ids-and-timers.ts";
import { ServiceError, usageError } from "../../platform/service-error.ts";

/** Access to an object store, if the settings give one. */
export interface StoreSettings {
  readonly objectStore: S3Access | undefined;
}

/**
 * Returns the storage of a log's archived events: the folder `place`, or the S3 storage if `place` is an address.
 * Throws a ServiceError if the address is invalid or has no access keys.
 */
export function locateSegments(place: string, config: StoreSettings): SegmentStorage {
  return isS3Address(place) ? openSegmentStorage(place, config) : createSegmentFolder(place);
}

/**
 * Opens the storage at `s3://BUCKET/PREFIX`, with the access in the settings. Throws a ServiceError (usage,
 * configuration).
 */
export function openSegmentStorage(
  address: string,
  { objectStore }: StoreSettings,
  deps: Partial<S3Deps> = {},
): SegmentStorage {
  const place = parseS3Address(address);
  if (place === undefined) {
    throw usageError(`${address} is no address: it is s3://BUCKET/PREFIX, of letters, digits and . _ - /`);
  }
  if (objectStore === undefined) {
    throw new ServiceError("configuration", `${address}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`);
  }
  const objectFetch = createObjectFetch({ allowedOrigins: [objectStore.endpoint] });
  const client = createS3Client(objectStore, {
    objectFetch,
    clock: systemClock,
    sleep,
    random: Math.random,
    ...deps,
  });
  return createS3Storage(client, place);
}
