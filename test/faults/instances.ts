import { SQL } from "bun";
import { openInstallation, stop, until, type Installation, type Running } from "../harness/process.ts";
import { isOfChannel, settingsFor, unlimit, type NetworkRow } from "./delivery-network-table.ts";

/** One of several services that share a log. */
export interface Instance {
  readonly place: number;
  readonly service: Running;
  /** The id that the instance reports. */
  readonly id: string;
}

/** Services that share a log, each at a numbered place where it may end and restart. Disposing it ends all. */
export interface Instances extends AsyncDisposable {
  readonly world: Installation;
  readonly places: readonly number[];
  /** The instances that serve now. */
  living(): readonly Instance[];
  /**
   * Resolves with the instance that has this number in the trial. If that instance has ended, resolves when the next
   * one starts under the number.
   */
  at(place: number): Promise<Instance>;
  /** Starts an instance at a free place, with its own settings. */
  start(place: number, settings?: Record<string, string>): Promise<void>;
  /** Ends the instance. Returns its exit code; null after a signal. */
  end(place: number, how: "SIGKILL" | "SIGTERM"): Promise<number | null>;
}

interface InstancesOptions {
  readonly count: number;
  readonly settings: Readonly<Record<string, string>>;
  /** The networks that receive clicks. */
  readonly rows: readonly NetworkRow[];
  /** Returns the settings that only the instance at this place has, in addition to `settings`. */
  readonly own?: (place: number) => Record<string, string>;
  /** Flags for the runtime of each instance. */
  readonly flags?: readonly string[];
}

/**
 * Opens instances of one log, of which the first holds all roles. The sandbox's X has no rate limits that the tests
 * could reach.
 */
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
  // The instances start one after the other, so that the first one gets all roles.
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
  /** All instances of the log. The first entry is the instance that gives this answer. */
  readonly instances: readonly { readonly id: string }[];
  readonly roles: Readonly<Record<string, string>>;
  readonly channels: Readonly<Record<string, { readonly pending: number }>>;
}

export async function healthOf({ get }: Running): Promise<Health> {
  return (await (await get("/api/health")).json()) as Health;
}

/**
 * Waits until each instance serves and has read the whole log. Throws with the output of an instance that ended by
 * itself.
 */
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

/**
 * Maximum time in ms until roles are handed over: longer than any lease, and than it takes to notice that one has
 * expired.
 */
const HANDED_OVER_MS_MAX = 120_000;

/**
 * Waits until other instances hold all these roles of `former`, an instance that has ended or stands still. `asked` is
 * asked who holds them. Returns the seconds that each role took.
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

/** Seconds since `startedAt`, rounded to a tenth. */
export function secondsSince(startedAt: number): number {
  return Math.round((performance.now() - startedAt) / 100) / 10;
}

/** Ends the leases of a dead instance on PostgreSQL, so that a test need not wait for them; by default all leases. */
export async function expireLeases(database: string, instance = ""): Promise<void> {
  await using sql = new SQL(database);
  const [{ name }] = await sql`select format('%I.%I', table_schema, table_name) as name
    from information_schema.tables where table_name = 'leases'`;
  await sql.unsafe(`update ${name} set expires_at = 0 where holder like '${instance}%'`);
}
