import { afterAll } from "bun:test";
import { testAttacks, tally, type Attack } from "../http/attacks/attack.ts";
import { openTarget, type Target } from "../http/attacks/target.ts";
import { JSON_TYPE } from "../http/wire/raw-request-bytes.ts";
import { residentMiB } from "../http/wire/process-memory.ts";
import { TOKEN } from "../harness/process.ts";

const target = await openTarget();
afterAll(() => target[Symbol.asyncDispose]());

const MIB = 1024 * 1024;
const BODY_MIB = 100;

/**
 * Maximum growth of the service's memory during large uploads, in MiB. The service stops reading a body at 64 KiB, and
 * the rest stays in the sockets.
 */
const GROWTH_MIB_MAX = 20;

/** Number of clients that send a too large body at the same time. */
const TOGETHER = 4;

const PATHS = [
  ["POST", "/api/notify"],
  ["POST", "/api/messaging"],
  ["POST", "/social/run"],
  ["POST", "/session"],
  ["POST", "/nothing"],
  ["GET", "/api/health"],
  ["PUT", "/api/notify"],
] as const;

const piece = Buffer.alloc(MIB, "x");
const chunk = Buffer.concat([Buffer.from(`${MIB.toString(16)}\r\n`), piece, Buffer.from("\r\n")]);

interface Upload {
  readonly status: number;
  readonly peakMiB: number;
}

/** Sends all of the body, or stops when the service closes the connection. */
async function upload({ open, url, service }: Target, method: string, path: string, framing: string): Promise<Upload> {
  using connection = await open();
  const lines = [
    `${method} ${path} HTTP/1.1`,
    `Host: ${new URL(url).host}`,
    JSON_TYPE,
    `Authorization: Bearer ${TOKEN}`,
    framing,
  ];
  await connection.write(`${lines.join("\r\n")}\r\n\r\n`);
  let peakMiB = 0;
  for (let sent = 0; sent < BODY_MIB && !connection.isClosed; sent++) {
    await connection.write(framing.startsWith("Transfer") ? chunk : piece);
    peakMiB = Math.max(peakMiB, residentMiB(service));
  }
  const [answer] = await connection.answered(1);
  return { status: answer?.status ?? 0, peakMiB };
}

const large: Attack = {
  name: `the service refuses bodies of ${BODY_MIB} MiB, ${TOGETHER} at a time, on every kind of path`,
  expected: `refused before they are read, memory + ≤ ${GROWTH_MIB_MAX} MiB`,
  async run(attacked) {
    // The first uploads are not measured, because the service's code is compiled during them.
    await upload(attacked, "POST", "/api/notify", `Content-Length: ${BODY_MIB * MIB}`);
    const startMiB = residentMiB(attacked.service);
    const uploads: Upload[] = [];
    for (const [method, path] of PATHS) {
      for (const framing of [`Content-Length: ${BODY_MIB * MIB}`, "Transfer-Encoding: chunked"]) {
        const group = Array.from({ length: TOGETHER }, () => upload(attacked, method, path, framing));
        uploads.push(...(await Promise.all(group)));
      }
    }
    const grownMiB = Math.max(...uploads.map(({ peakMiB }) => peakMiB)) - startMiB;
    const statuses = uploads.map(({ status }) => status);
    const wrong = statuses.filter((status) => ![200, 401, 404, 405, 413].includes(status)).map(String);
    if (grownMiB > GROWTH_MIB_MAX) wrong.push(`grew by ${grownMiB} MiB`);
    return { tried: uploads.length, seen: `${tally(statuses)}, memory + ${grownMiB.toFixed(1)} MiB`, wrong };
  },
};

const lying: Attack = {
  name: "the service refuses lengths of up to 4 EiB whose body never arrives",
  expected: "413 or 400 at once",
  async run(attacked) {
    const lengths = ["65537", "1000000000", "4294967297", "1152921504606846976", "4611686018427387904", "9".repeat(40)];
    const statuses: number[] = [];
    for (const length of lengths) {
      const headers = [JSON_TYPE, `Authorization: Bearer ${TOKEN}`, `Content-Length: ${length}`];
      statuses.push((await attacked.ask({ method: "POST", path: "/api/notify", headers })).status);
    }
    const wrong = statuses.filter((status) => status !== 413 && status !== 400).map(String);
    return { tried: lengths.length, seen: tally(statuses), wrong };
  },
};

testAttacks([large, lying], () => target, 120_000);
