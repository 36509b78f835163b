import { BEARER } from "../harness/process.ts";
import type { Instance } from "./instances.ts";

/** A subscriber of the service's events that reconnects where it stopped. Disposing it ends it. */
export interface Follower extends Disposable {
  /** The ids of the received events, in order. */
  readonly seen: readonly string[];
  /** Position of the last received event. */
  readonly position: number;
}

/** Delay before the follower reconnects, shorter than that of a browser. */
const RETRY_MS = 100;

/** Follows the log from its first event. `at`: returns the instance to connect to. */
export function follow(at: () => Promise<Instance>): Follower {
  const seen: string[] = [];
  const ending = new AbortController();
  let position = 0;

  const followOnce = async (): Promise<void> => {
    const { service } = await at();
    const headers = { ...BEARER, "last-event-id": String(position) };
    const { body } = await service.get("/events", { headers, signal: ending.signal });
    let rest = "";
    for await (const text of body!.pipeThrough(new TextDecoderStream())) {
      const messages = (rest + text).split("\n\n");
      rest = messages.pop() ?? "";
      for (const message of messages) {
        const [, id, data] = /^id: ?(\d+)\ndata: ?(.+)$/m.exec(message) ?? [];
        if (id === undefined || data === undefined) continue;
        position = Number(id);
        seen.push((JSON.parse(data) as { id: string }).id);
      }
    }
  };
  void (async () => {
    while (!ending.signal.aborted) {
      await followOnce().catch(() => {});
      await Bun.sleep(RETRY_MS);
    }
  })();
  return {
    seen,
    get position() {
      return position;
    },
    [Symbol.dispose]: () => ending.abort(),
  };
}
