// These tests call the code directly.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { inspect } from "node:util";
import type { SegmentStorage } from "eventstore-lite/segments";
import { startS3, type S3Fault, type S3Sandbox } from "../../../sandbox/s3/server.ts";
import { createObjectFetch } from "../../../src/networks/safe-fetch.ts";
import { parseS3Address } from "../../../src/networks/s3/parse-address.ts";
import { REQUEST_ATTEMPTS_MAX, createS3Client, type S3Access } from "../../../src/networks/s3/client.ts";
import { createS3Storage } from "../../../src/networks/s3/s3-segment-storage.ts";
import { secret } from "../../../src/platform/secret.ts";
import { denoProgram } from "../../harness/bun-deno-or-binary.ts";

const PAGE_KEYS = 3;
const BYTES = Uint8Array.from({ length: 300_000 }, (_, at) => (at * 7) % 251);

let s3: S3Sandbox;
/** Delays between the attempts at a request, in ms and in order. */
let waits: number[];
let storage: SegmentStorage;
beforeEach(async () => {
  s3 = await startS3({ pageKeys: PAGE_KEYS });
  waits = [];
  storage = open();
});
afterEach(() => s3[Symbol.asyncDispose]());

interface Changes extends Partial<S3Access> {
  readonly bucket?: string;
  readonly clock?: () => number;
}

function open({ bucket = s3.bucket, clock = Date.now, ...changes }: Changes = {}): SegmentStorage {
  const { endpoint, region, credentials } = s3;
  const { accessKeyId, secretAccessKey } = credentials;
  const access = { endpoint, region, accessKeyId, secretAccessKey: secret(secretAccessKey), ...changes };
  const client = createS3Client(access, {
    objectFetch: createObjectFetch({ allowedOrigins: [access.endpoint] }),
    clock,
    random: () => 1,
    sleep: async (ms) => void waits.push(ms),
  });
  return createS3Storage(client, parseS3Address(`s3://${bucket}/logs/one`)!);
}

const thrown = (running: Promise<unknown>): Promise<Error> =>
  running.then(
    () => expect.unreachable(),
    (fault: unknown) => fault as Error,
  );
const fail = (method: S3Fault["method"], kind: S3Fault["kind"], count = 1) => s3.faults.push({ method, kind, count });

test("a file is written, read, listed and removed; repeats change nothing", async () => {
  expect(await storage.read("a.zst")).toBeUndefined();
  await storage.write("a.zst", BYTES);
  await storage.write("a.zst", BYTES);
  expect(Buffer.compare((await storage.read("a.zst"))!, BYTES)).toBe(0);
  expect([...s3.objects.keys()]).toEqual(["logs/one/a.zst"]);
  await storage.remove("a.zst");
  await storage.remove("a.zst");
  expect(await storage.list()).toEqual([]);
});

test("a write over other bytes is refused and keeps them", async () => {
  await storage.write("a.zst", BYTES);
  const fault = await thrown(storage.write("a.zst", BYTES.slice(1)));
  expect(fault.message).toBe("s3://reachlog-test/logs/one/a.zst is there with other bytes: move it away");
  expect(Buffer.compare((await storage.read("a.zst"))!, BYTES)).toBe(0);
});

test("a list has all pages in order and nothing of another prefix", async () => {
  const names = Array.from({ length: 3 * PAGE_KEYS + 1 }, (_, at) => `segments/${String(at).padStart(3, "0")}.zst`);
  for (const name of names.toReversed()) await storage.write(name, Buffer.from(name));
  s3.objects.set("logs/one-more/x.zst", { body: Buffer.alloc(1), meta: {} });
  expect(await storage.list()).toEqual(names);
  expect(s3.requests.filter((one) => one === "GET ")).toHaveLength(4);
});

test("a truncated list without a continuation token is rejected", async () => {
  const { endpoint, region, credentials } = s3;
  const answer =
    "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>a</Key></Contents></ListBucketResult>";
  const client = createS3Client(
    { endpoint, region, accessKeyId: credentials.accessKeyId, secretAccessKey: secret(credentials.secretAccessKey) },
    {
      objectFetch: createObjectFetch({ allowedOrigins: [endpoint], fetch: async () => new Response(answer) }),
      clock: Date.now,
      random: () => 1,
      sleep: async () => {},
    },
  );
  const cut = createS3Storage(client, parseS3Address(`s3://${s3.bucket}`)!);
  expect(await thrown(cut.list())).toMatchObject({ kind: "rejected", message: expect.stringContaining("cut off") });
});

test("a read of an altered or truncated file fails and names it", async () => {
  await storage.write("a.zst", BYTES);
  const object = s3.objects.get("logs/one/a.zst")!;
  const { body } = object;
  const altered = Buffer.from(body);
  altered[1_000]! ^= 1;
  for (const other of [altered, body.subarray(0, -1), Buffer.alloc(0)]) {
    object.body = other;
    expect((await thrown(storage.read("a.zst"))).message).toBe(
      `s3://reachlog-test/logs/one/a.zst is not as it was written: ${other.length} bytes`,
    );
  }
});

describe("a temporary fault", () => {
  test.each(["slow_down", "cut_before", "cut_after", "cut_body"] as const)("%s: a read is retried", async (kind) => {
    await storage.write("a.zst", BYTES);
    fail("GET", kind, 2);
    expect(Buffer.compare((await storage.read("a.zst"))!, BYTES)).toBe(0);
    // Only the first delay is certain: the runtime itself may have repeated a request after the connection died.
    expect(waits[0]).toBe(500);
  });

  test.each(["slow_down", "cut_before", "cut_after", "conflict"] as const)(
    "%s: a write is retried and stores one file",
    async (kind) => {
      fail("PUT", kind, 2);
      await storage.write("a.zst", BYTES);
      expect(Buffer.compare(s3.objects.get("logs/one/a.zst")!.body, BYTES)).toBe(0);
    },
  );

  test.each(["slow_down", "cut_before", "cut_after"] as const)("%s: a removal is retried", async (kind) => {
    await storage.write("a.zst", BYTES);
    fail("DELETE", kind, 2);
    await storage.remove("a.zst");
    expect(s3.objects.size).toBe(0);
  });
});

test("an unavailable store is retried a limited number of times", async () => {
  fail("PUT", "slow_down", 1_000);
  const fault = await thrown(storage.write("a.zst", BYTES));
  expect(fault).toMatchObject({
    kind: "unavailable",
    message: "PUT s3://reachlog-test/logs/one/a.zst: the store answered 503 SlowDown",
  });
  expect(s3.requests).toHaveLength(REQUEST_ATTEMPTS_MAX);
  expect(waits).toHaveLength(REQUEST_ATTEMPTS_MAX - 1);
});

test("an address without a server is unavailable after the same number of attempts", async () => {
  const gone = open({ endpoint: "http://127.0.0.1:1" });
  expect(await thrown(gone.list())).toMatchObject({ kind: "unavailable", message: expect.stringContaining("refused") });
  expect(waits).toHaveLength(REQUEST_ATTEMPTS_MAX - 1);
});

test("a refusal names what to change, is not retried and shows no secret", async () => {
  const other = "another-secret-of-an-access-key-0123";
  const cases: readonly (readonly [SegmentStorage, string])[] = [
    [open({ secretAccessKey: secret(other) }), "403 SignatureDoesNotMatch: check AWS_SECRET_ACCESS_KEY"],
    [open({ accessKeyId: "AKIAOTHER" }), "403 InvalidAccessKeyId: check AWS_ACCESS_KEY_ID"],
    [open({ region: "us-west-2" }), "400 AuthorizationHeaderMalformed: check AWS_REGION"],
    [open({ bucket: "another-bucket" }), "404 NoSuchBucket: create the bucket, or check the address"],
    [open({ clock: () => Date.now() - 3_600_000 }), "403 RequestTimeTooSkewed: set this machine's clock"],
  ];
  for (const [refused, sentence] of cases) {
    for (const act of [() => refused.list(), () => refused.read("a"), () => refused.write("a", BYTES)]) {
      const before = s3.requests.length;
      const fault = await thrown(act());
      expect(fault).toMatchObject({ kind: "configuration", message: expect.stringContaining(sentence) });
      expect(s3.requests.length - before).toBe(1);
      const shown = inspect(fault, { depth: 10, showHidden: true });
      for (const hidden of [other, s3.credentials.secretAccessKey]) expect(shown).not.toContain(hidden);
    }
  }
  expect(s3.objects.size).toBe(0);
});

test("the store refuses a body that was altered in transit", async () => {
  const { endpoint, region, credentials } = s3;
  const client = createS3Client(
    { endpoint, region, accessKeyId: credentials.accessKeyId, secretAccessKey: secret(credentials.secretAccessKey) },
    {
      objectFetch: createObjectFetch({
        allowedOrigins: [endpoint],
        fetch: (url, init) => fetch(url, { ...init, body: Buffer.from("altered") }),
      }),
      clock: Date.now,
      random: () => 1,
      sleep: async () => {},
    },
  );
  const altering = createS3Storage(client, parseS3Address(`s3://${s3.bucket}`)!);
  expect((await thrown(altering.write("a.zst", BYTES))).message).toContain("400 XAmzContentSHA256Mismatch");
  expect(s3.objects.size).toBe(0);
});

test.each([
  ["s3://bucket-one", { bucket: "bucket-one", prefix: "" }],
  ["s3://bucket-one/", { bucket: "bucket-one", prefix: "" }],
  ["s3://bucket-one/logs/a_b.c/", { bucket: "bucket-one", prefix: "logs/a_b.c/" }],
  ["s3://bucket-one/logs/../x", undefined],
  ["s3://bucket-one/./x", undefined],
  ["s3://bucket-one//x", undefined],
  ["s3://bucket-one/a b", undefined],
  ["s3://bucket-one/a%2e", undefined],
  ["s3://Bucket", undefined],
  ["s3://b", undefined],
  ["/backups/s3", undefined],
])("the address %s is parsed or refused", (text, wanted) => expect(parseS3Address(text)).toEqual(wanted));

test("a process on Deno writes, lists, reads and removes despite cut connections", async () => {
  fail("PUT", "cut_after");
  fail("GET", "cut_body");
  const program = join(import.meta.dirname, "../programs/use-s3.ts");
  const { endpoint, bucket, region, credentials } = s3;
  const args = [endpoint, bucket, region, credentials.accessKeyId, credentials.secretAccessKey];
  const child = Bun.spawn([denoProgram(), "run", "--allow-all", program, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const seen = JSON.parse(await new Response(child.stdout).text()) as unknown;
  const names = Array.from({ length: 2 * PAGE_KEYS }, (_, at) => `part-${at}.zst`);
  expect(seen).toEqual({ names, isSame: true, other: "SegmentDamaged", left: names.slice(1) });
});
