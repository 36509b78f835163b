import { uptime } from "node:os";
import type { LogStore } from "../../events/event-types-and-codec.ts";
import { systemClock, type Clock } from "../platform/clock-ids-and-timers.ts";
import { formatDuration } from "../platform/format-numbers-and-lists.ts";
import type { Logger } from "../platform/logger.ts";

/**
 * Maximum difference in ms between a machine's clock and the log's clock, which follows the database server's. With
 * NTP, machines differ by milliseconds. Beyond five minutes, as in Kerberos, one of the two is wrong.
 */
export const CLOCK_SKEW_MS_MAX = 5 * 60_000;

/**
 * Minimum step back of the server's clock, in ms, that the log's clock follows. After a smaller step, the log's time
 * stands still until the server's clock has caught up.
 */
const STEP_MS = 1_000;

/**
 * Interval at which the machine's clock is recorded, in ms. Its small corrections between two records must not add up
 * to a jump.
 */
const KEEP_EVERY_MS = 10_000;

/** Source of the time on the log's server. */
interface ServerTime {
  readonly now: LogStore["now"];
}

interface LeaseGranter {
  readonly leases: LogStore["leases"];
}

/** The time that all instances of a log decide by. */
export interface LogClock {
  /**
   * Returns the log's time, in ms since the epoch, by which its events are recorded. It is at most one round trip
   * behind the server's time, and goes back only if the server's clock was set back by more than a second.
   */
  readonly now: Clock;
  /**
   * Returns how far the machine's clock is ahead of the log's time, in ms; negative if behind. `newest`: time of the
   * newest event, if known; the log's time counts as no earlier than that.
   */
  skewMs(newest?: string): number;
  /** Reads the server's time and adjusts the log's clock to it. Throws what the store throws. */
  look(store: ServerTime): Promise<void>;
  /**
   * Wraps a store so that each lease that it grants also adjusts the log's clock: the server's time is the granted
   * lease's end minus its duration.
   */
  watched<Store extends LeaseGranter>(store: Store): Store;
}

/** Creates the clock of a log in a file from a clock that the caller trusts. */
export function fileClock(clock: Clock): LogClock {
  const skewMs = (newest?: string): number => Math.min(0, clock() - parseNewest(newest));
  return { now: clock, skewMs, look: async () => {}, watched: (store) => store };
}

/**
 * Record, stored next to a log, of the clock that a service used. A start notices by it that the clock was moved
 * meanwhile.
 */
export interface ClockRecord extends ReadClockRecord {
  /** Records that `wallMs` is the right time. */
  keep(wallMs: number): void;
}

interface ReadClockRecord {
  /** Returns the time that the machine's clock should show now, by the record; undefined if that is not known. */
  expectedMs(): number | undefined;
  /** True if an operator has removed the record, and so declared the machine's clock right. */
  isForgotten(): boolean;
}

/** Returns the time that the machine's clock should show, if the record contradicts it; else undefined. */
export function deniedBy(record: ReadClockRecord | undefined, wallClock = systemClock) {
  const expected = record?.expectedMs();
  return expected !== undefined && isSkewed(wallClock() - expected) ? expected : undefined;
}

/**
 * Creates the clock of a log in a file: the machine's, or the monotonic one after a large jump, until the machine's is
 * right or the record is removed. An event with a future time would make the log's time stand still.
 */
export function machineClock({
  wallClock = systemClock,
  elapsedMs = () => performance.now(),
  asleepMs = readAsleepMs,
  record,
  logger,
}: MachineClockDeps = {}): LogClock {
  let offset = (deniedBy(record, wallClock) ?? wallClock()) - elapsedMs();
  let slept = asleepMs();
  let isHeld = false;
  let keptAt = -Infinity;

  /** Returns the time that the machine's clock should show, with its sleep taken into account. */
  const awake = (wall: number): number => {
    const asleep = asleepMs();
    // A sleep of about this length must explain the jump of the wall clock; otherwise the clock was moved, and the log
    // keeps its own time. The measured sleep is exact to a few seconds only.
    if (Math.abs(wall - elapsedMs() - offset - (asleep - slept)) > CLOCK_SKEW_MS_MAX) return elapsedMs() + offset;
    slept = asleep;
    offset = wall - elapsedMs();
    return wall;
  };
  const now: Clock = () => {
    const wall = wallClock();
    const isNear = Math.abs(wall - elapsedMs() - offset) <= CLOCK_SKEW_MS_MAX;
    return isNear ? wall : Math.floor(awake(wall));
  };
  return {
    now,
    skewMs: (newest) => wallClock() - Math.max(now(), parseNewest(newest)),
    async look() {
      if (isHeld && record?.isForgotten() === true) offset = wallClock() - elapsedMs();
      const skewMs = wallClock() - now();
      const wasHeld = isHeld;
      isHeld = isSkewed(skewMs);
      // The log's clock follows small corrections of the machine's clock, so that they do not add up to a jump.
      if (!isHeld) offset = wallClock() - elapsedMs();
      if (!isHeld && elapsedMs() - keptAt >= KEEP_EVERY_MS) {
        keptAt = elapsedMs();
        record?.keep?.(now());
      }
      if (isHeld && !wasHeld) logger?.warn("this machine's clock jumped: no run starts", { jumped_ms: skewMs });
    },
    watched: (store) => store,
  };
}

interface MachineClockDeps extends LogClockDeps {
  /** How long the machine has slept, in ms. A monotonic clock stands still meanwhile, and the wall clock does not. */
  readonly asleepMs?: () => number;
  /** Record of the clock; without `keep`, it is only read. */
  readonly record?: ReadClockRecord & Partial<ClockRecord>;
}

/**
 * Returns how long the machine has slept, exact to some seconds. Zero if the runtime may not read the uptime; a sleep
 * then looks like a jump of the clock.
 */
function readAsleepMs(): number {
  try {
    return uptime() * 1_000 - performance.now();
  } catch {
    return 0;
  }
}

/** Parses the time of the newest event to ms since the epoch; -Infinity if there is no event yet. */
function parseNewest(newest: string | undefined): number {
  return newest === undefined ? -Infinity : Date.parse(newest);
}

interface Warner {
  readonly warn: Logger["warn"];
}

interface LogClockDeps {
  /** Clock of the machine. */
  readonly wallClock?: Clock | undefined;
  /** A clock that only goes forward, in ms. */
  readonly elapsedMs?: () => number;
  readonly logger?: Warner | undefined;
}

/**
 * Creates the clock of a log on a server. Between two looks at the server it advances by the monotonic clock, so that
 * setting the machine's clock affects no decision. Before the first look it is the machine's clock.
 */
export function serverClock({
  wallClock = systemClock,
  elapsedMs = () => performance.now(),
  logger,
}: LogClockDeps = {}): LogClock {
  /** Difference between the log's time and `elapsedMs`, in ms; undefined before the first look at the server. */
  let offset: number | undefined;
  /**
   * Lowest and highest possible difference between the log's time and `elapsedMs`, in ms. Each look at the server
   * narrows these bounds.
   */
  let known = { least: -Infinity, most: Infinity };
  let latest = -Infinity;

  const now: Clock = () => {
    if (offset === undefined) return wallClock();
    latest = Math.max(latest, Math.floor(elapsedMs() + offset));
    return latest;
  };

  /**
   * Corrects the log's clock by one look at the server: at some moment between `asked` and now, the server's time was
   * `logMs`. The offset stays as it is if that is compatible with this look.
   */
  const learn = (logMs: number, asked: number): void => {
    const [least, most] = [logMs - elapsedMs(), logMs + 1 - asked];
    const movedMs = Math.max(0, least - known.most) + Math.min(0, most - known.least);
    const narrowed = { least: Math.max(known.least, least), most: Math.min(known.most, most) };
    known = movedMs === 0 ? narrowed : { least, most };
    offset = Math.min(Math.max(offset ?? least, known.least), known.most);
    if (Math.abs(movedMs) <= STEP_MS) return;
    if (movedMs < 0) latest = -Infinity;
    logger?.warn("the clock of the log's server was moved, or this machine slept", { moved_ms: Math.round(movedMs) });
  };

  return {
    now,
    skewMs: (newest) => wallClock() - Math.max(now(), parseNewest(newest)),
    async look(store) {
      const asked = elapsedMs();
      learn(await store.now(), asked);
    },
    watched: (store) => ({
      ...store,
      leases: {
        ...store.leases,
        async acquire(name, options) {
          const asked = elapsedMs();
          const lease = await store.leases.acquire(name, options);
          if (lease !== undefined) learn(lease.expiresAt.getTime() - options.ttlMs, asked);
          return lease;
        },
      },
    }),
  };
}

/** True if the machine's clock and the log's differ too much. Runs and expiry then stop. */
export function isSkewed(skewMs: number): boolean {
  return Math.abs(skewMs) > CLOCK_SKEW_MS_MAX;
}

export function skewInWords(skewMs: number): string {
  return `this machine's clock is ${formatDuration(Math.round(Math.abs(skewMs) / 1_000))} ${skewMs < 0 ? "behind" : "ahead of"} the log's`;
}

export const SKEW_REMEDY =
  "correct the wrong one of the two, with NTP, and runs start again by themselves; " +
  "if this machine's clock is right, say so with reachlog clock-corrected";

/** Describes how far the machine's clock and the log's are apart, and what to do. Undefined if runs can start. */
export function describeClockFault(skewMs: number): string | undefined {
  return isSkewed(skewMs) ? `No run starts: ${skewInWords(skewMs)}; ${SKEW_REMEDY}.` : undefined;
}
