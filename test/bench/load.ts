/**
 * A load client in a process of its own: keeps `connections` sockets busy with one prepared POST each for a while, or
 * with a GET where there is no body, and
 * prints what it saw as JSON. Raw sockets, so that the client costs less than what it measures.
 * A body with `sent=` and 16 digits gets the moment of its sending there, µs since the epoch, each another one.
 * Arguments: URL, connections, seconds, body, requests a second in all (0: as many as there are answers), and how many
 * at the most.
 */
import { connect, type Socket } from "node:net";

const STAMP = "sent=";
const [target = "", connections = "1", seconds = "1", body = "", rate = "0", most = "Infinity"] = process.argv.slice(2);
const url = new URL(target);
const content = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
/** As a browser follows a link. */
const visit = "user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\r\n";
const request = Buffer.from(
  `${body === "" ? "GET" : "POST"} ${url.pathname} HTTP/1.1\r\nhost: ${url.host}\r\n${body === "" ? visit : content}`,
);
/** Between two requests of one connection; 0: the next one leaves at once. */
const intervalMs = Number(rate) > 0 ? (Number(connections) / Number(rate)) * 1000 : 0;
const isStamped = request.includes(STAMP);
const stampAt = request.indexOf(STAMP) + STAMP.length;
const latencies: number[] = [];
let failures = 0;
let sent = 0;
let lastStamp = 0;
const start = performance.now();
const until = start + Number(seconds) * 1000;

await Promise.all(Array.from({ length: Number(connections) }, (_, index) => drive(index)));

latencies.sort((a, b) => a - b);
const at = (share: number): number =>
  latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
const requests = latencies.length;
const perSecond = requests / ((performance.now() - start) / 1000);
console.log(JSON.stringify({ requests, perSecond, p50Ms: at(0.5), p99Ms: at(0.99), failures }));
process.exit(0);

/** One connection: the next request leaves when the last answer is complete and its time has come. */
function drive(index: number): Promise<void> {
  return new Promise((resolve) => {
    let dueAt = start + (index / Number(connections)) * intervalMs;
    let sentAt = 0;
    let answer = "";
    const socket: Socket = connect(Number(url.port), url.hostname, sendWhenDue);
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      answer += chunk;
      if (!isComplete(answer)) return;
      if (/^HTTP\/1\.1 (?:202|302)/.test(answer)) latencies.push(performance.now() - sentAt);
      else failures++;
      answer = "";
      dueAt += intervalMs;
      sendWhenDue();
    });
    socket.on("error", () => {
      failures++;
      resolve();
    });

    function sendWhenDue(): void {
      const now = performance.now();
      if (Math.max(now, dueAt) >= until || sent >= Number(most)) socket.end(resolve);
      else if (now >= dueAt) send();
      else setTimeout(send, dueAt - now);
    }

    function send(): void {
      sentAt = performance.now();
      sent++;
      socket.write(isStamped ? stamped() : request);
    }
  });
}

/** A copy: the socket may still hold the one before. */
function stamped(): Buffer {
  lastStamp = Math.max(lastStamp + 1, Math.floor((performance.timeOrigin + performance.now()) * 1000));
  const copy = Buffer.from(request);
  copy.write(String(lastStamp), stampAt);
  return copy;
}

function isComplete(answer: string): boolean {
  const end = answer.indexOf("\r\n\r\n");
  if (end === -1) return false;
  const length = /content-length: (\d+)/i.exec(answer.slice(0, end))?.[1];
  return answer.length >= end + 4 + Number(length ?? 0);
}
