/**
 * Load client in a separate process: keeps sockets busy with one prepared POST each (GET without a body), and prints
 * what it measured as JSON. It uses raw sockets, so that it costs less than what it measures.
 */
import { connect, type Socket } from "node:net";

/**
 * Text before a stamp in a body. The client replaces the 16 digits after it by the time of sending, in µs since the
 * epoch; each stamp is unique.
 */
const STAMP = "sent=";
// Arguments: URL, connections, seconds, body, total requests a second (0 for as fast as they are answered), and the
// maximum number of requests.
const [target = "", connections = "1", seconds = "1", body = "", rate = "0", most = "Infinity"] = process.argv.slice(2);
const url = new URL(target);
const content = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
/** Headers of a browser that follows a link. */
const visit = "user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\r\n";
const request = Buffer.from(
  `${body === "" ? "GET" : "POST"} ${url.pathname} HTTP/1.1\r\nhost: ${url.host}\r\n${body === "" ? visit : content}`,
);
/** Time in ms from one request of a connection to the next; 0 to send the next one immediately. */
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

/** Runs one connection: the next request is sent when the last answer is complete and the request is due. */
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

/**
 * Returns a copy of the request with a new stamp in its body: the time of sending in µs, unique for each request. The
 * request itself stays unchanged, because a socket may still be writing it.
 */
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
