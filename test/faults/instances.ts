import { openInstallation, stop, until, type Installation, type Running } from "../harness/process.ts";
import { isOfChannel, settingsFor, unlimit, type NetworkRow } from "./delivery-networks.ts";

/** One of several services of a log. */
export interface Instance {
  readonly place: number;
  readonly service: Running;
  /** As it calls itself. */
  readonly id: string;
}

/** Services of one log, each of which may end and be restarted at its place. Disposing it ends all. */
export interface Instances extends AsyncDisposable {
  readonly world: Installation;
  readonly places: readonly number[];
  /** Those that serve now. */
  living(): readonly Instance[];
  /** The instance that serves at a place now, or the next one that starts there. */
  at(place: number): Promise<Instance>;
  /** Starts one where none is; `settings` are its own. */
  start(place: number, settings?: Record<string, string>): Promise<void>;
  /** Answers the exit code, which a signal gives none of. */
  end(place: number, how: "SIGKILL" | "SIGTERM"): Promise<number | null>;
}

interface InstancesOptions {
  readonly count: number;
  readonly settings: Readonly<Record<string, string>>;
  /** The networks that are told of clicks. */
  readonly rows: readonly NetworkRow[];
  /** Of the instance at a place alone. */
  readonly own?: (place: number) => Record<string, string>;
  /** What the runtime of each is told. */
  readonly flags?: readonly string[];
}

/** The first has all roles; the sandbox has no limits of its own here. */
export async function openInstances(options: InstancesOptions): Promise<Instances> {
  const { count, settings, rows, own = () => ({}), flags = [] } = options;
  await using stack = new AsyncDisposableStack();
  const world = stack.use(
    await openInstallation({ x: { dmLimit: 100_000, dmDayLimit: 100_000, dmReadLimit: 100_000 } }),
  );
  unlimit(world.sandbox);
  const { env, sandbox } = world;
  for (const name of Object.keys(env).filter(isOfChannel)) delete env[name];
  const key = { REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64") };
  Object.assign(env, key, settings, ...rows.map((row) => settingsFor(row, sandbox)));
  const places = Array.from({ length: count }, (_, place) => place);
  const emptySlot = () => ({ now: undefined as Instance | undefined, next: Promise.withResolvers<Instance>() });
  const slots = places.map(emptySlot);

  const start: Instances["start"] = async (place, more = own(place)) => {
    const service = await world.serve(more, flags);
    const instance = { place, service, id: await idOf(service) };
    Object.assign(slots[place]!, { now: instance });
    slots[place]!.next.resolve(instance);
  };
  // One after the other: the first has all roles.
  for (const place of places) await start(place);

  const opened = stack.move();
  return {
    world,
    places,
    living: () => slots.flatMap(({ now }) => now ?? []),
    at: (place) => slots[place]!.next.promise,
    start,
    async end(place, how) {
      const { service } = await slots[place]!.next.promise;
      slots[place] = emptySlot();
      if (how === "SIGTERM") return stop(service);
      service.process.kill(how);
      await service.process.exited;
      return service.process.exitCode;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

async function idOf(service: Running): Promise<string> {
  const { instances } = await healthOf(service);
  return instances[0]!.id;
}

interface Health {
  readonly log: { readonly position: number };
  /** The one that is asked is the first. */
  readonly instances: readonly { readonly id: string }[];
  readonly roles: Readonly<Record<string, string>>;
  readonly channels: Readonly<Record<string, { readonly pending: number }>>;
}

export async function healthOf({ get }: Running): Promise<Health> {
  return (await (await get("/api/health")).json()) as Health;
}

/** Until each serves, and knows all that the log holds. Throws with what one wrote that ended by itself. */
export async function untilReady(instances: Instances): Promise<void> {
  for (const place of instances.places) {
    const { service } = await instances.at(place);
    await until(
      () => isReady(service),
      (ready) => ready,
    );
  }
}

async function isReady({ get, process, log }: Running): Promise<boolean> {
  if (process.exitCode !== null) throw new Error(`an instance ended with ${process.exitCode}: ${log().slice(-2_000)}`);
  return (await get("/readyz").catch(() => undefined))?.status === 200;
}

/** Longer than any lease, and than it takes to notice that it has run out. */
const HANDED_OVER_MS_MAX = 120_000;

/**
 * Waits until others have all these roles of one that has ended, or stands still. Answers how long that took for each, in
 * seconds; asks `asked`.
 */
export async function untilHandedOver(
  asked: Running,
  former: string,
  roles: readonly string[],
): Promise<Readonly<Record<string, number>>> {
  const startedAt = performance.now();
  const took: Record<string, number> = {};
  await until(
    async () => (await healthOf(asked)).roles,
    (holders) => {
      for (const role of roles) {
        const holder = holders[role];
        if (holder !== undefined && holder !== former) took[role] ??= secondsSince(startedAt);
      }
      return roles.every((role) => role in took);
    },
    HANDED_OVER_MS_MAX,
  );
  return took;
}

/** To a tenth. */
export function secondsSince(startedAt: number): number {
  return Math.round((performance.now() - startedAt) / 100) / 10;
}
