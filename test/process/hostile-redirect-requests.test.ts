// These tests start the service or commands as processes.
import { connect } from "node:net";
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { openInstallation } from "../harness/process.ts";
import { countCases } from "../harness/case-count.ts";

const TARGETS = ["https://shop.example/offer?a=b", "https://shop.example/%0d%0aSet-Cookie:%20a=b"];
const CODES = ["spring", "Summer-1"];

/** Total number of requests. The next constant is the number of requests that are sent at once. */
const REQUESTS = countCases(10_000);
const AT_ONCE = 50;

const SILENCE_MS = 3_000;

/** Sends these bytes and returns the answer once the connection has ended. */
async function exchange(port: number, request: Uint8Array): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  socket.setEncoding("latin1");
  socket.on("data", (chunk: string) => void (answer += chunk));
  // The server may close the connection while the invalid request is still being sent. That is no fault.
  socket.on("error", () => {});
  socket.write(request);
  // If the server takes the bytes for an incomplete request, it waits for more. So the test closes the connection after
  // a while.
  socket.setTimeout(SILENCE_MS, () => socket.destroy());
  await new Promise((resolve) => socket.on("close", resolve));
  return answer;
}

const code = fc.constantFrom(...CODES);
const evil = fc.constantFrom("https://evil.example/", "//evil.example", "\\\\evil.example", "javascript:alert(1)");

/**
 * fast-check generator of request targets: unknown, similar, encoded and overlong codes, other schemes and hosts, line
 * ends and zero bytes.
 */
const path = fc.oneof(
  code.map((known) => `/l/${known}`),
  fc.string({ unit: "binary-ascii", maxLength: 20 }).map((unknown) => `/l/${unknown}`),
  fc.tuple(code, fc.string({ minLength: 1, maxLength: 2 })).map(([known, more]) => `/l/${known}${more}`),
  code.map((known) => `/l/${known.slice(0, -1)}`),
  code.map((known) => `/l/${known.toUpperCase()}`),
  code.map((known) => `/l/${Array.from(known, (one) => `%${one.charCodeAt(0).toString(16)}`).join("")}`),
  fc.tuple(code, evil).map(([known, elsewhere]) => `/l/${known}?url=${elsewhere}&target=${elsewhere}`),
  fc.tuple(code, evil).map(([known, elsewhere]) => `/l/${known}/${elsewhere}`),
  evil.map((elsewhere) => `/l/${elsewhere}`),
  evil.map((elsewhere) => `/l/${encodeURIComponent(elsewhere)}`),
  fc.tuple(evil, code).map(([elsewhere, known]) => `${elsewhere}/l/${known}`),
  code.map((known) => `/l/${known}%0d%0aLocation:%20https://evil.example/`),
  code.map((known) => `/l/${known}\r\nLocation: https://evil.example/`),
  code.map((known) => `/l/${known}%00`),
  code.map((known) => `/l/${known}\0`),
  code.map((known) => `/l/../l/${known}`),
  code.map((known) => `/l/%2e%2e/${known}`),
  fc.constantFrom("/l", "/l/", "/l/%", "/l/%ff", "/l/%c0%af", "/l/__proto__", "/l/constructor", "/l/toString"),
  fc.integer({ min: 1, max: 20 }).map((size) => `/l/${"x".repeat(size * 1_000)}`),
);

/** Pattern of characters that would end a path, or the request line, too early. */
const BROKEN = /[\0-\x20\x7f]/;

const method = fc.constantFrom("GET", "GET", "GET", "HEAD", "POST", "PUT", "OPTIONS", "TRACE", "get");
const header = fc.constantFrom(
  "",
  "X-Forwarded-Host: evil.example\r\n",
  "X-Original-URL: /l/spring\r\n",
  "Referer: https://evil.example/\r\n",
  "Sec-Purpose: prefetch\r\n",
  "Sec-GPC: 1\r\n",
);
const host = fc.constantFrom(
  "localhost",
  "localhost",
  "localhost",
  "evil.example",
  "",
  "localhost\r\nHost: evil.example",
);

test("hostile requests get no 5xx, redirect to known targets only, and record only redirected clicks", async () => {
  await using world = await openInstallation();
  Object.assign(world.env, { LINK_BASE: "https://go.example", REDIRECTS: "on" });
  const service = await world.host();
  for (const [at, target] of TARGETS.entries()) await world.command("links", "add", CODES[at]!, target);
  const port = Number(new URL(service.url).port);
  const requests = fc.sample(fc.tuple(method, path, header, host), { numRuns: REQUESTS, seed: 20261126 });
  const answers: string[] = [];
  for (let at = 0; at < requests.length; at += AT_ONCE) {
    const together = requests.slice(at, at + AT_ONCE).map(([verb, target, more, name]) => {
      const text = `${verb} ${target} HTTP/1.1\r\nHost: ${name}\r\nUser-Agent: Firefox/140.0\r\n${more}Connection: close\r\n\r\n`;
      return exchange(port, Buffer.from(text, "latin1"));
    });
    answers.push(...(await Promise.all(together)));
  }
  const statuses = answers.map((answer) => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0));
  const locations = answers.flatMap((answer) => /^location: (.*?)\r$/im.exec(answer.split("\r\n\r\n")[0]!)?.[1] ?? []);
  // Bun answers an invalid request line with 505 before the service sees the request, so the service is not at fault.
  const isBroken = (at: number) => statuses[at] === 505 && BROKEN.test(requests[at]![1]);
  expect(requests.filter((_, at) => statuses[at]! >= 500 && !isBroken(at))).toEqual([]);
  expect([...new Set(locations)].sort()).toEqual(TARGETS.toSorted());
  expect(locations.length).toBe(statuses.filter((status) => status === 302).length);
  const exported = await world.command("audit", "export", "--type", "LinkClicked");
  const clicks = exported.out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).data.short_code as string);
  // Only requests with a known code got a redirect, and each of them recorded a click.
  expect(clicks.length).toBe(locations.length);
  expect(locations.length).toBeWithin(REQUESTS / 100, REQUESTS / 2);
  expect([...new Set(clicks)].sort()).toEqual(CODES.toSorted());
  expect(service.log()).not.toContain("evil.example");
});
