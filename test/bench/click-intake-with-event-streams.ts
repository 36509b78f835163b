import { connect, type Socket } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { atLeast, compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench";
import { CLIENT, postClicks, type LoadResult } from "./post-clicks.ts";
import { startService } from "./start-service-process.ts";

const STREAMS = 200;

/** Path of the event stream that an open console page reads. The next constant is the path that a program reads. */
const PAGES = "/events?only=position";
const PROGRAMS = "/events";

/**
 * Measures durably accepted clicks a second while clients follow the log. Compares them with the same service without
 * such clients.
 */
export const eventStreams: Bench = async (options) => {
  const seconds = options.quick ? 2 : 4;
  await using service = await startService(join(options.directory, "event-streams.sqlite"));
  let received = 0;
  const count = (bytes: Buffer): void => void (received += bytes.length);
  const followedBy = (path: string) => async (): Promise<LoadResult> => {
    const streams = await Promise.all(Array.from({ length: STREAMS }, () => follow(service.url, path, count)));
    try {
      return await postClicks(service.url, seconds);
    } finally {
      for (const stream of streams) stream.destroy();
    }
  };
  const { pages, programs, alone } = await interleave(roundsOf(options), {
    pages: followedBy(PAGES),
    programs: followedBy(PROGRAMS),
    alone: () => postClicks(service.url, seconds),
  });
  if (received === 0) throw new Error("no stream showed anything");
  options.note(`the client is ${CLIENT}; streams are read as fast as they come`);
  const rowsOf = (who: string, followed: readonly LoadResult[]) => {
    const row = (what: string, unit: string, value: (load: LoadResult) => number, bar?: ReturnType<typeof atLeast>) =>
      compare(`event-streams, ${what} ${STREAMS} ${who}`, unit, followed.map(value), alone.map(value), bar);
    return [
      row("durable 202s with", "/s", (load) => load.perSecond, atLeast(0.9)),
      row("p99 with", "µs", (load) => load.p99Ms * 1000),
    ];
  };
  return [...rowsOf("open pages; none", pages), ...rowsOf("programs that follow; none", programs)];
};

async function follow(url: string, path: string, count: (bytes: Buffer) => void): Promise<Socket> {
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("data", count);
  await once(socket, "connect");
  socket.write(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\naccept: text/event-stream\r\n\r\n`);
  await once(socket, "data");
  return socket;
}
