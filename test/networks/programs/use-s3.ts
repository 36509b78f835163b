// Writes, lists, reads and removes files in an S3-compatible store, and prints the results as JSON. Runs on any
// runtime.
import { createObjectFetch } from "../../../src/networks/safe-fetch.ts";
import { createS3Client } from "../../../src/networks/s3/client.ts";
import { createS3Storage } from "../../../src/networks/s3/s3-segment-storage.ts";
import { secret } from "../../../src/platform/secret.ts";

const [endpoint = "", bucket = "", region = "", accessKeyId = "", secretAccessKey = ""] = process.argv.slice(2);
const client = createS3Client(
  { endpoint, region, accessKeyId, secretAccessKey: secret(secretAccessKey) },
  {
    objectFetch: createObjectFetch({ allowedOrigins: [endpoint] }),
    clock: Date.now,
    random: () => 0,
    sleep: async () => {},
  },
);
const storage = createS3Storage(client, { bucket, prefix: "deno/" });
const bytes = (at: number): Uint8Array => new Uint8Array(200_000).fill(at);
for (let at = 0; at < 6; at++) await storage.write(`part-${at}.zst`, bytes(at));
const names = await storage.list();
const read = await storage.read("part-3.zst");
const isSame = read !== undefined && Buffer.compare(read, bytes(3)) === 0;
const other = await storage.write("part-3.zst", bytes(4)).catch((fault: Error) => fault.name);
await storage.remove("part-0.zst");
console.log(JSON.stringify({ names, isSame, other, left: await storage.list() }));
