/**
 * A load client in a process of its own: keeps `connections` sockets busy with one prepared POST each for a while, and
 * prints what it saw as JSON. Raw sockets, so that the client costs less than what it measures.
 * Arguments: URL, connections, seconds, body.
 */
import { connect, type Socket } from "node:net";

const [target = "", connections = "1", seconds = "1", body = ""] = process.argv.slice(2);
const url = new URL(target);
const request = Buffer.from(
  `POST ${url.pathname} HTTP/1.1\r\nhost: ${url.host}\r\ncontent-type: application/json\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
);
const latencies: number[] = [];
let failures = 0;
const until = performance.now() + Number(seconds) * 1000;

await Promise.all(Array.from({ length: Number(connections) }, () => drive()));

latencies.sort((a, b) => a - b);
const at = (share: number): number =>
  latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
console.log(
  JSON.stringify({ perSecond: latencies.length / Number(seconds), p50Ms: at(0.5), p99Ms: at(0.99), failures }),
);
process.exit(0);

/** One connection: the next request leaves when the last answer is complete. */
function drive(): Promise<void> {
  return new Promise((resolve) => {
    let sentAt = 0;
    let answer = "";
    const socket: Socket = connect(Number(url.port), url.hostname, send);
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      answer += chunk;
      if (!isComplete(answer)) return;
      if (answer.startsWith("HTTP/1.1 2")) latencies.push(performance.now() - sentAt);
      else failures++;
      answer = "";
      if (performance.now() < until) send();
      else socket.end(resolve);
    });
    socket.on("error", () => {
      failures++;
      resolve();
    });

    function send(): void {
      sentAt = performance.now();
      socket.write(request);
    }
  });
}

function isComplete(answer: string): boolean {
  const end = answer.indexOf("\r\n\r\n");
  if (end === -1) return false;
  const length = /content-length: (\d+)/i.exec(answer.slice(0, end))?.[1];
  return answer.length >= end + 4 + Number(length ?? 0);
}
