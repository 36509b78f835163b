// Attempts what an attacker in control of the service would try, and prints how each attempt ended. Runs on Deno.
import { spawn } from "node:child_process";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { networkInterfaces } from "node:os";

const [given = ""] = process.argv.slice(2);

/**
 * Addresses that the service's settings allow (`allowed`) and forbid (`other`), and folders to which the service may
 * (`writable`) and may not write (`outside`).
 */
const { allowed, other, writable, outside } = JSON.parse(given) as Record<string, string>;

const TRIES: Readonly<Record<string, () => unknown>> = {
  "an address that is configured": () => connected(new URL(allowed ?? "")),
  "another port of it": () => connected(new URL(other ?? "")),
  "another host": () => lookup("reachlog-test.invalid"),
  "listening elsewhere": () => listened(),
  "a file where the log lies": () => writeFileSync(`${writable}/probe`, "probe"),
  "a file beside that": () => writeFileSync(`${outside}/probe`, "probe"),
  "a file of the machine": () => readFileSync("/etc/passwd"),
  "the program itself": () => writeFileSync(import.meta.filename, ""),
  "another program": () => once(spawn("/bin/true"), "exit"),
  "the machine's own addresses": () => networkInterfaces(),
  "a library of the machine": () => process.dlopen({ exports: {} }, "/lib/x86_64-linux-gnu/libc.so.6"),
};

for (const [what, act] of Object.entries(TRIES)) console.log(`${what}: ${await endOf(act)}`);

async function endOf(act: () => unknown): Promise<string> {
  try {
    await act();
    return "done";
  } catch (fault) {
    const { name, message } = fault as Error;
    return name === "NotCapable" || /EPERM|Requires .* access/.test(message) ? "refused" : `${name}: ${message}`;
  }
}

function connected({ hostname, port }: URL): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      socket.destroy();
      resolve();
    }).once("error", reject);
  });
}

function listened(): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    // Deno throws the error for a forbidden address where only this handler can catch it.
    process.once("uncaughtException", reject);
    server.listen(0, "127.0.0.1", () => server.close(() => resolve()));
  });
}
