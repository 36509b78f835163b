import { SegmentDamaged, type SegmentStorage } from "eventstore-lite/segments";
import { ServiceError } from "../../../src/platform/service-error.ts";

/** Error of a simulated request whose process was killed in the middle of it. */
export class Killed extends Error {}

/** Maximum number of further requests to the simulated object store after which its listings show a change. */
const LAG_MAX = 12;

/**
 * Probabilities that a request to the simulated store fails before it takes effect, fails after it, or takes effect
 * long after its client gave up.
 */
const FAULTS = { before: 0.004, after: 0.004, later: 0.008 };

export type ModelStore = ReturnType<typeof createModelStore>;

/**
 * Simulated object store in memory, which handles requests in an order chosen by `random`. Like real stores, it is
 * consistent for each key, but its listings show changes late.
 */
export function createModelStore(random: () => number) {
  const objects = new Map<string, Uint8Array>();
  const lagging = new Map<string, { readonly isListed: boolean; readonly until: number }>();
  const waiting: (() => void)[] = [];
  const late: (() => void)[] = [];
  let requests = 0;
  let isFaulty = true;

  const isListed = (key: string): boolean => {
    const lag = lagging.get(key);
    return lag === undefined || !isFaulty || requests >= lag.until ? objects.has(key) : lag.isListed;
  };
  const change = (key: string, bytes: Uint8Array | undefined): void => {
    const lag = random() < 0.5 ? 0 : Math.floor(random() * LAG_MAX);
    lagging.set(key, { isListed: isListed(key), until: requests + lag });
    if (bytes === undefined) objects.delete(key);
    else objects.set(key, bytes);
  };
  const turn = (): Promise<void> => new Promise((resolve) => void waiting.push(resolve));

  /**
   * Opens a client of the simulated store. `mayKill` is called at each point where the client's process may die, and
   * returns true if it does.
   */
  const openClient = (mayKill: () => boolean): Pick<SegmentStorage, "list" | "read" | "write" | "remove"> => {
    const ask = async <Result>(effect: () => Result): Promise<Result> => {
      const fail = (): never => {
        if (mayKill()) throw new Killed();
        throw new ServiceError("unavailable", "503 SlowDown");
      };
      await turn();
      requests += 1;
      const fate = isFaulty ? random() : 0.5;
      if (mayKill() || fate < FAULTS.before) fail();
      if (fate > 1 - FAULTS.later) {
        late.push(effect);
        fail();
      }
      const result = effect();
      if (mayKill() || fate < FAULTS.before + FAULTS.after) fail();
      await turn();
      return result;
    };
    const read = (name: string): Promise<Uint8Array | undefined> => ask(() => objects.get(name));
    return {
      list: () => ask(() => [...new Set([...objects.keys(), ...lagging.keys()])].filter(isListed).toSorted()),
      read,
      async write(name, bytes) {
        const create = (): boolean => {
          if (objects.has(name)) return false;
          change(name, bytes);
          return true;
        };
        if (await ask(create)) return;
        const kept = await read(name);
        if (kept === undefined || Buffer.compare(kept, bytes) !== 0) throw new SegmentDamaged(`${name}: other bytes`);
      },
      remove: (name) =>
        ask(() => {
          if (objects.has(name)) change(name, undefined);
        }),
    };
  };

  return {
    objects,
    openClient,
    /** Makes the request wait until `run` lets it continue. */
    turn,
    /** Lets waiting requests continue, one at a time in random order, until `work` is done. */
    async run(work: Promise<unknown>): Promise<void> {
      let isDone = false;
      const end = (): void => void (isDone = true);
      void work.then(end, end);
      for (;;) {
        await new Promise((resolve) => void setImmediate(resolve));
        if (isDone) return void (await work);
        if (isFaulty && late.length > 0 && random() < 0.05) late.splice(Math.floor(random() * late.length), 1)[0]!();
        waiting.splice(Math.floor(random() * waiting.length), 1)[0]?.();
      }
    },
    /**
     * Ends all faults, and makes listings show every change at once. Before that, it lets a `share` of the requests
     * take effect whose clients gave up.
     */
    settle(share: number): void {
      isFaulty = false;
      for (const effect of late.splice(0))
        if (random() < share) effect();
        else late.push(effect);
    },
  };
}
