import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { outputOf } from "eventstore-lite/bench";
import type { WatchedServer } from "./start-service-process.ts";

/** Number of reads in a round. Open pages and Prometheus also read the same path again and again. */
const READS = 20;
const READ_EVERY_MS = 100;

const FORGOTTEN = 3;

/** Number by which the count of all recipients is divided to get the count of an import's recipients. */
const IMPORTED_PART = 5;

/**
 * Time in ms until the service has taken over what a command appended: it reads the events within 100 ms, then folds
 * them or loads the rebuilt states.
 */
const SEEN_MS = 500;

/**
 * Operations of the service besides the intake of clicks. A round performs each as often as is needed to find the
 * longest turn of the event loop that it causes.
 */
export const OPERATIONS = {
  "import by a command": async ({ log }, people) => {
    await runCommand(log, "recipients", "import", writeList(log, people / IMPORTED_PART));
    await wait(SEEN_MS);
  },
  "import by HTTP": async (server, people) => {
    const body = readFileSync(writeList(server.log, people / IMPORTED_PART));
    await ask(server, "/social/recipients", { type: "text/csv", body });
  },
  "/deliveries": reading("/deliveries"),
  "take-over after a replay": async ({ log }) => {
    await runCommand(log, "replay");
    await wait(SEEN_MS);
  },
  "/": reading("/"),
  "/people?search=": reading("/people?search=person_4999"),
  "forgetting a person": async (server) => {
    for (let count = 0; count < FORGOTTEN; count++) {
      const body = JSON.stringify({ recipient: `person_${forgotten++}` });
      await ask(server, "/social/recipients/forget", { type: "application/json", body });
    }
  },
  "/metrics": reading("/metrics"),
} as const satisfies Record<string, (server: WatchedServer, people: number) => Promise<void>>;

/** Number of recipients erased so far. Runs have already written to each of them before the erasure. */
let forgotten = 0;

let imports = 0;

/**
 * Writes a list for an import. It always has the same recipients, so that their number stays constant, but each list
 * gives them another company.
 */
function writeList(log: string, rows: number): string {
  const file = join(dirname(log), "people.csv");
  imports++;
  const row = (_: unknown, at: number): string => `imported_${at},opt_in,Name Surname,Company ${imports}\n`;
  writeFileSync(file, `username,basis,name,company\n${Array.from({ length: rows }, row).join("")}`);
  return file;
}

function runCommand(log: string, ...args: readonly string[]): Promise<string> {
  const main = join(import.meta.dirname, "../../src/main.ts");
  const env = { PATH: process.env["PATH"] ?? "", DATABASE_URL: `sqlite:${log}` };
  return outputOf([process.execPath, main, ...args], { cwd: dirname(log), env });
}

function reading(path: string) {
  return async (server: WatchedServer): Promise<void> => {
    for (let read = 0; read < READS; read++) {
      await ask(server, path);
      await wait(READ_EVERY_MS);
    }
  };
}

interface Sent {
  readonly type: string;
  readonly body: string | Buffer<ArrayBuffer>;
}

async function ask({ url, token }: WatchedServer, path: string, sent?: Sent): Promise<void> {
  const cookie = await (cookies[url] ??= signIn(url, token));
  const known = { authorization: `Bearer ${token}`, cookie };
  const request =
    sent === undefined
      ? { headers: known }
      : { method: "POST", headers: { ...known, "content-type": sent.type }, body: sent.body };
  const response = await fetch(url + path, request);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${text.slice(0, 200)}`);
}

/**
 * Session cookies by the service's address. The console's pages require a session where other routes require a token.
 */
const cookies: Record<string, Promise<string>> = {};

async function signIn(url: string, token: string): Promise<string> {
  const { headers } = await fetch(`${url}/session`, {
    method: "POST",
    body: new URLSearchParams({ token }),
    redirect: "manual",
  });
  return headers.get("set-cookie")?.split(";")[0] ?? "";
}
