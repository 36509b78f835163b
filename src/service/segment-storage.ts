import { createSegmentFolder, type SegmentStorage } from "eventstore-lite";
import type { Config } from "../config/config.ts";
import { createObjectFetch } from "../networks/safe-fetch.ts";
import { isS3Address, parseS3Address } from "../networks/s3/address.ts";
import { createS3Client, type S3Deps } from "../networks/s3/client.ts";
import { createS3Storage } from "../networks/s3/storage.ts";
import { sleep, systemClock } from "../platform/clock.ts";
import { ServiceError, usageError } from "../platform/service-error.ts";

/** Where the archived events of a log are: a folder, or an address as {@link openSegmentStorage} takes it, which throws. */
export function locateSegments(place: string, config: Pick<Config, "objectStore">): SegmentStorage {
  return isS3Address(place) ? openSegmentStorage(place, config) : createSegmentFolder(place);
}

/**
 * The storage at `s3://BUCKET/PREFIX`, with the access that the settings give. Throws a ServiceError (usage, configuration).
 */
export function openSegmentStorage(
  address: string,
  { objectStore }: Pick<Config, "objectStore">,
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
