import { BEARER } from "../harness/process.ts";
import type { Instances } from "./instances.ts";

/** Triggers runs one after another, at each instance in turn. Disposing it ends the triggering. */
export interface Triggers extends Disposable {
  /** Number of runs that began. */
  readonly started: number;
  stop(): Promise<void>;
}

const EVERY_MS = 500;

export function startTriggers(instances: Instances): Triggers {
  const stopping = new AbortController();
  let started = 0;
  const triggering = (async () => {
    for (let turn = 0; !stopping.signal.aborted; turn++) {
      const living = instances.living();
      const to = living[turn % living.length];
      const answer = await to?.service.post("/social/run", undefined, BEARER).catch(() => undefined);
      if (answer?.status === 202) started++;
      await Bun.sleep(EVERY_MS);
    }
  })();
  return {
    get started() {
      return started;
    },
    async stop() {
      stopping.abort();
      await triggering;
    },
    [Symbol.dispose]: () => stopping.abort(),
  };
}
