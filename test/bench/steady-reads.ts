/**
 * Program that reads one path at a steady pace on one connection and prints the latencies. Arguments: URL, requests a
 * second, uncounted requests, counted requests.
 */
import { connect } from "node:net";

const [target = "", rate = "1", warmUp = "0", counted = "1"] = process.argv.slice(2);
const url = new URL(target);
const request = `GET ${url.pathname} HTTP/1.1\r\nhost: ${url.host}\r\n\r\n`;
const intervalMs = 1000 / Number(rate);
const total = Number(warmUp) + Number(counted);
const latencies: number[] = [];
const done = Promise.withResolvers<void>();

const socket = connect(Number(url.port), url.hostname, askWhenDue);
socket.setNoDelay(true);
socket.setEncoding("latin1");
socket.on("error", done.reject);
let dueAt = performance.now();
let askedAt = 0;
let answer = "";
socket.on("data", (chunk: string) => {
  answer += chunk;
  const end = answer.indexOf("\r\n\r\n");
  const length = Number(/content-length: (\d+)/i.exec(answer.slice(0, Math.max(0, end)))?.[1]);
  if (end === -1 || answer.length < end + 4 + length) return;
  if (!answer.startsWith("HTTP/1.1 200")) return done.reject(new Error(answer));
  answer = "";
  const now = performance.now();
  latencies.push(now - askedAt);
  if (latencies.length === total) return done.resolve();
  dueAt += intervalMs;
  askWhenDue();
});
await done.promise;
socket.destroy();

const sorted = latencies.slice(Number(warmUp)).sort((a, b) => a - b);
const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
console.log(JSON.stringify({ p50Ms: at(0.5), p99Ms: at(0.99) }));

/** Sends a read when it is due. If it must wait for a slow answer, its latency counts from when it was due. */
function askWhenDue(): void {
  const now = performance.now();
  if (now >= dueAt) ask(dueAt);
  else setTimeout(() => ask(performance.now()), dueAt - now);
}

function ask(since: number): void {
  askedAt = since;
  socket.write(request);
}
