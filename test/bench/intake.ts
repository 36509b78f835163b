import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Measured } from "./main.ts";

const ROOT = join(import.meta.dirname, "../..");

const CONNECTIONS = 128;

/** A click of about 300 bytes, as a link shortener posts it. */
const BODY = JSON.stringify({
  event: "click",
  domain: "go.example",
  short_code: "spring-26",
  original_url: "https://shop.example/products/42?utm_source=x&utm_medium=social&fbclid=IwAR0abcdefghij",
  ip: "203.0.113.7",
  user_agent: "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0",
});

interface Load {
  readonly perSecond: number;
  readonly p99Ms: number;
  readonly failures: number;
}

/** Durable 202s a second against the same Elysia route and schema with a synchronous handler and no storage. */
export async function intake(quick: boolean): Promise<readonly Measured[]> {
  const rounds = quick ? 1 : 5;
  const seconds = quick ? 2 : 4;
  const directory = mkdtempSync(join(tmpdir(), "reachlog-bench-"));
  const service = start(["src/main.ts", "serve"], {
    PORT: "0",
    DATABASE_URL: `sqlite:${join(directory, "reachlog.sqlite")}`,
    LOG_LEVEL: "info",
  });
  const bare = start(["test/bench/bare-route.ts"], {});
  try {
    const [serviceUrl, bareUrl] = await Promise.all([urlOf(service), urlOf(bare)]);
    const ours: Load[] = [];
    const limit: Load[] = [];
    // One round each that does not count: compilation, caches, the first pages of the file.
    await load(serviceUrl, 1);
    await load(bareUrl, 1);
    for (let round = 0; round < rounds; round++) {
      limit.push(await load(bareUrl, seconds));
      ours.push(await load(serviceUrl, seconds));
    }
    return [
      row("intake, durable 202s", ours, limit, "/s", ({ perSecond }) => perSecond, "≥ 0.65"),
      row("intake, p99", ours, limit, "µs", ({ p99Ms }) => p99Ms * 1000, "≤ 4"),
    ];
  } finally {
    for (const child of [service, bare]) {
      child.kill();
      await child.exited;
    }
    rmSync(directory, { recursive: true, force: true });
  }
}

function row(
  what: string,
  ours: readonly Load[],
  limit: readonly Load[],
  unit: string,
  value: (load: Load) => number,
  bar: string,
): Measured {
  const ratios = ours.map((load, round) => value(load) / value(limit[round] ?? load)).sort((a, b) => a - b);
  const spread = [ratios[0] ?? 0, ratios.at(-1) ?? 0] as const;
  return { what, ours: median(ours.map(value)), limit: median(limit.map(value)), unit, bar, spread };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

function start(args: readonly string[], env: Record<string, string>) {
  return Bun.spawn([process.execPath, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
}

/** Both servers say on stderr where they listen, as one JSON line with a `url`. */
async function urlOf(child: ReturnType<typeof start>): Promise<string> {
  let seen = "";
  for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
    seen += chunk;
    const url = /"url":"([^"]+)"/.exec(seen)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error(`a server did not start: ${seen}`);
}

async function load(url: string, seconds: number): Promise<Load> {
  const target = `${url}/api/tracking/event`;
  const client = Bun.spawn(
    [process.execPath, "test/bench/load.ts", target, String(CONNECTIONS), String(seconds), BODY],
    { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] },
  );
  const result = JSON.parse(await new Response(client.stdout).text()) as Load;
  if (result.failures > 0) throw new Error(`${result.failures} requests to ${url} failed`);
  return result;
}
