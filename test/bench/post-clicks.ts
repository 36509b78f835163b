import { join } from "node:path";
import { outputOf, processorTimeOf, type ProcessorTime } from "eventstore-lite/bench";
import { CLICK, CLICK_PATH } from "./sample-click.ts";
import type { Server } from "./start-service-process.ts";

export const CONNECTIONS = 128;

/** Measurements of a load client. */
export interface LoadResult {
  /** Requests answered with 202 or a redirect. */
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/**
 * Name of the load client that posts clicks: wrk if it is installed, because a client in JavaScript costs as much
 * processor time as the service that it measures.
 */
export const CLIENT = Bun.which("wrk") === null ? "http-load-client.ts" : "wrk";

/**
 * Posts clicks as fast as they are answered: from `addresses` client addresses if wrk is installed, otherwise from one.
 */
export function postClicks(server: string, seconds: number, addresses = 1): Promise<LoadResult> {
  const url = server + CLICK_PATH;
  if (CLIENT === "http-load-client.ts") return postSteadily(server, seconds, 0);
  const script = join(import.meta.dirname, "click.lua");
  const bounds = ["--threads", "1", "--connections", String(CONNECTIONS), "--duration", `${seconds}s`, "--latency"];
  return run(["wrk", ...bounds, "--script", script, url, "--", CLICK, String(addresses)]);
}

/** Measurements with the server's processor time per request in µs. */
export type Measured = LoadResult & ProcessorTime;

export async function measureClicks(server: Server, seconds: number): Promise<Measured> {
  const before = processorTimeOf(server.pid);
  const load = await postClicks(server.url, seconds);
  const after = processorTimeOf(server.pid);
  const each = (part: keyof ProcessorTime): number => (after[part] - before[part]) / load.requests;
  return { ...load, main: each("main"), others: each("others") };
}

/** Posts clicks at `rate` a second; 0 for as fast as they are answered. */
export function postSteadily(server: string, seconds: number, rate: number, click = CLICK): Promise<LoadResult> {
  return runLoad([server + CLICK_PATH, CONNECTIONS, seconds, click, rate]);
}

/** Follows a short link at a steady rate a second. */
export function followLink(server: string, seconds: number, rate: number): Promise<LoadResult> {
  return runLoad([`${server}/l/spring`, CONNECTIONS, seconds, "", rate]);
}

/** Posts `clicks` clicks as fast as they are answered. */
export function postSome(server: string, clicks: number): Promise<LoadResult> {
  return runLoad([server + CLICK_PATH, CONNECTIONS, POST_SECONDS_MAX, CLICK, 0, clicks]);
}

/** Maximum time in seconds for the clicks of one flood. A slower server is not worth comparing. */
const POST_SECONDS_MAX = 300;

function runLoad(args: readonly (string | number)[]): Promise<LoadResult> {
  return run([process.execPath, join(import.meta.dirname, "http-load-client.ts"), ...args.map(String)]);
}

/** Runs a load client, whose last line of output is JSON. */
async function run(command: readonly string[]): Promise<LoadResult> {
  const lines = (await outputOf(command)).trim().split("\n");
  const { failures, ...load } = JSON.parse(lines.at(-1) ?? "") as LoadResult & { failures: number };
  if (failures > 0) throw new Error(`${failures} of ${load.requests} requests were not answered with 202`);
  return load;
}
