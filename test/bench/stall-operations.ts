import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { outputOf } from "eventstore-lite/bench/child";
import type { WatchedServer } from "./server.ts";

/** Pages and figures are asked for again and again, as open pages and Prometheus do. */
const READS = 20;
const READ_EVERY_MS = 100;

const FORGOTTEN = 3;

/** Of all people so many come with one import. */
const IMPORTED_PART = 5;

/** What a command has appended the service sees within 100 ms, and folds or takes over then. */
const SEEN_MS = 500;

/** What a service does beside clicks; each so often that the longest turn of a round is one of it. */
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

/** Of the recipients that runs have written to. */
let forgotten = 0;

let imports = 0;

/** Of the same people each time, or the list would grow with the rounds; something is new about each. */
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

/** Of each service: pages want a session where others want a token. */
const cookies: Record<string, Promise<string>> = {};

async function signIn(url: string, token: string): Promise<string> {
  const { headers } = await fetch(`${url}/session`, {
    method: "POST",
    body: new URLSearchParams({ token }),
    redirect: "manual",
  });
  return headers.get("set-cookie")?.split(";")[0] ?? "";
}
