import { BEARER, type Running } from "../harness/process.ts";

export interface LoadOptions {
  readonly connections: number;
  /** Returns the service to call. Called before each request, so that the load follows a restarted service. */
  readonly service: () => Promise<Running>;
  /** Length of each click's address in characters. Longer ones fill a disk sooner. */
  readonly urlChars?: number;
}

/** Clicks posted continuously by several callers, with their answers. Disposing it ends the load immediately. */
export interface Load extends Disposable {
  /** Event id in each answer with 202. */
  readonly acknowledged: Set<string>;
  /** Number of answers by status. */
  readonly answers: Map<number, number>;
  /** Number of requests that got no answer because their connection broke. */
  readonly unanswered: number;
  /** Stops once each request in flight is answered or has lost its connection. */
  stop(): Promise<void>;
}

/** Creates the body of a click that the service accepts and that requests a dispatch to each configured channel. */
export function click(number: number, urlChars = 40): Record<string, string> {
  return {
    event: "click",
    domain: "go.example",
    short_code: `c${number % 11}`,
    original_url: `https://shop.example/${"p".repeat(urlChars)}`,
    user_agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
  };
}

export function startLoad({ connections, service, urlChars }: LoadOptions): Load {
  const acknowledged = new Set<string>();
  const answers = new Map<number, number>();
  let unanswered = 0;
  const stopping = new AbortController();
  let next = 0;

  const postOne = async (to: Running): Promise<void> => {
    // Requests carry a token, because the limit on anonymous requests is not under test.
    const answer = await to.post("/api/tracking/event", click(next++, urlChars), BEARER);
    // If the connection breaks within the answer's body, this call throws, and the click does not count as
    // acknowledged.
    const body = (await answer.json()) as { id?: string };
    answers.set(answer.status, (answers.get(answer.status) ?? 0) + 1);
    if (answer.status === 202 && body.id !== undefined) acknowledged.add(body.id);
  };
  const connection = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const to = await service();
      await postOne(to).catch(() => {
        unanswered++;
      });
    }
  };
  const running = Promise.all(Array.from({ length: connections }, connection));
  // Prevents an unhandled rejection if the service did not start. `stop` and the test itself report that.
  running.catch(() => {});

  return {
    acknowledged,
    answers,
    get unanswered() {
      return unanswered;
    },
    async stop() {
      stopping.abort();
      await running;
    },
    [Symbol.dispose]() {
      stopping.abort();
    },
  };
}
