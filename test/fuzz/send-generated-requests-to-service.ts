import * as fc from "fast-check";
import { residentMiB } from "../http/wire/process-memory.ts";
import { authorize, openInstallation, type Running, type Installation, stop } from "../harness/process.ts";
import type { Deployment } from "./fixed-deployments.ts";
import { everyOperation, type Operation } from "./parse-openapi-operations.ts";
import { requestsTo, type FuzzRequest } from "./arbitrary-requests.ts";
import { faultsOf } from "./check-answer-against-document.ts";
import { openWire, type Wire } from "./send-over-reused-connections.ts";

/** Number of requests in flight at the same time. */
const TOGETHER = 64;

const REST_LOOKS = 20;
const REST_LOOK_MS = 250;

export interface FuzzOptions {
  readonly requests: number;
  /** Seed of the random requests. The same seed generates the same requests. */
  readonly seed: number;
  readonly deployment: Deployment;
}

export interface FuzzReport {
  readonly requests: number;
  /** Number of answers by status. */
  readonly statuses: ReadonlyMap<number, number>;
  /**
   * Number of operations in the document. `seen` are the documented answers that occurred, such as `POST /api/notify
   * 200`.
   */
  readonly operations: number;
  readonly seen: ReadonlySet<string>;
  /** Highest memory use of the service during the requests, in MiB; `startMiB`: its memory use before them. */
  readonly peakMiB: number;
  readonly startMiB: number;
  /** Memory of the service some time after the requests, in MiB. */
  readonly restMiB: number;
  /** Statuses of the health endpoints at the end. */
  readonly health: readonly number[];
  readonly verify: { readonly code: number; readonly out: string };
}

/**
 * Sends a real service, connected to the sandbox, requests within and outside of its OpenAPI document. Throws
 * fast-check's report, with seed and smallest request, at the first undocumented answer.
 */
export async function fuzz({ requests, seed, deployment }: FuzzOptions): Promise<FuzzReport> {
  await using world = await openInstallation();
  const service = await world.serve(deployment.settings);
  // The test raises the rate limits of Slack and Telegram. Otherwise the test would mostly wait for these limits.
  world.sandbox.slack.limit = 1e9;
  world.sandbox.telegram.limit = 1e9;
  if (deployment.settings["X_CLIENT_ID"] !== "") await authorize(service, world.sandbox);
  for (const fault of deployment.faults) world.sandbox.faults.add(fault);
  const operations = everyOperation(await (await service.get("/openapi.json")).text());
  using wire = openWire(service.url);
  const counts = createCounts(service);
  const batch = fc.array(requestsTo(operations.filter(hasEnd)), {
    minLength: TOGETHER,
    maxLength: TOGETHER,
    size: "max",
  });
  const property = fc.asyncProperty(batch, async (together) => {
    const faults = await Promise.all(together.map((request) => tryOne(request, wire, operations, counts)));
    counts.weigh();
    const found = faults.flat();
    if (found.length > 0) throw new Error(found.join("\n"));
  });
  const numRuns = Math.ceil(requests / TOGETHER);
  const { failed, errorInstance } = await fc.check(property, { numRuns, seed, endOnFailure: true });
  // Throws a short error instead of fast-check's report, which would print every request of the batch with its
  // documentation.
  if (failed) throw new Error(`seed ${seed}: ${String(errorInstance)}`);
  return { ...counts.report(), operations: operations.length, ...(await endOf(world, service)) };
}

/** False if the operation answers with a stream of events, which never ends by itself. */
function hasEnd({ answers }: Operation): boolean {
  return answers.get(200)?.content.has("text/event-stream") !== true;
}

async function tryOne(
  request: FuzzRequest,
  wire: Wire,
  operations: readonly Operation[],
  counts: Counts,
): Promise<string[]> {
  const answer = await wire.send(request);
  if (answer === undefined) return [`${oneLine(request)}: hung up`];
  counts.count(request, answer.status);
  return faultsOf(request, answer, operations).map(
    (fault) => `${oneLine(request)}: ${fault}\n  ${answer.status} ${answer.body}`,
  );
}

/** Formats a request in one line, with enough detail to send it again by hand. */
function oneLine({ operation, method, path, headers, body, host, caller, type }: FuzzRequest): string {
  const bytes =
    body === undefined
      ? ""
      : ` ${body.verdict} ${JSON.stringify(Buffer.from(body.bytes).toString("latin1").slice(0, 500))}`;
  return `${method ?? operation.method} ${path} (${JSON.stringify({ host, caller, type, headers })})${bytes}`;
}

interface Counts {
  count(request: FuzzRequest, status: number): void;
  weigh(): void;
  report(): Pick<FuzzReport, "requests" | "statuses" | "seen" | "peakMiB" | "startMiB">;
}

function createCounts(service: Running): Counts {
  const statuses = new Map<number, number>();
  const seen = new Set<string>();
  const startMiB = residentMiB(service);
  let peakMiB = startMiB;
  let requests = 0;
  return {
    count({ operation, method }, status) {
      requests += 1;
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (method === undefined && operation.answers.has(status))
        seen.add(`${operation.method} ${operation.path} ${status}`);
    },
    weigh() {
      peakMiB = Math.max(peakMiB, residentMiB(service));
    },
    report: () => ({ requests, statuses, seen, peakMiB, startMiB }),
  };
}

async function endOf(
  world: Installation,
  service: Running,
): Promise<Pick<FuzzReport, "health" | "verify" | "restMiB">> {
  const restMiB = await restOf(service);
  const health = [await service.get("/api/health"), await service.get("/social/health")].map(({ status }) => status);
  await stop(service);
  return { health, restMiB, verify: await world.execute("audit", "verify") };
}

/**
 * Returns the least memory of the service within some seconds, in MiB, because the garbage collector frees memory late.
 */
async function restOf(service: Running): Promise<number> {
  let least = residentMiB(service);
  for (let look = 0; look < REST_LOOKS; look++) {
    await Bun.sleep(REST_LOOK_MS);
    least = Math.min(least, residentMiB(service));
  }
  return least;
}
