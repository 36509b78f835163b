import { BEARER } from "../harness/process.ts";
import type { Instance } from "./instances.ts";

/** A subscriber of the service's events, who connects again where it was. Disposing it ends it. */
export interface Follower extends Disposable {
  /** The ids of the events that came, in their order. */
  readonly seen: readonly string[];
  /** Of the last of them. */
  readonly position: number;
}

/** Shorter than a browser waits. */
const RETRY_MS = 100;

/** Follows the log from its first event on at the place that `at` names. */
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
