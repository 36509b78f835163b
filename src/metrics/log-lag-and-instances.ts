import type { Registry } from "prom-client";
import type { LogStore } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import type { Delivery } from "../delivery/wait-for-outcome.ts";
import type { Instance } from "../log/instance-heartbeats.ts";
import { CLOCK_SKEW_MS_MAX } from "../log/log-time-and-clock-skew.ts";
import { ROLES } from "../log/leases-and-roles.ts";
import type { Clock } from "../platform/clock-ids-and-timers.ts";
import type { Projector } from "../projector/projector.ts";
import { lookUp, lookUpEach } from "./register-instruments.ts";

export interface LogSources {
  readonly store: LogStore;
  readonly projector: Projector;
  /** Load of the service: its open event streams. */
  readonly load: { readonly streams: number };
  /** When the log became unreachable, in ms since 1970; undefined while it is reachable. */
  readonly awaySince: () => number | undefined;
  /** Returns how far this machine's clock is ahead of the log's time, in ms. */
  readonly skewMs: () => number;
  readonly clock: Clock;
  /** Returns the position up to which a witness has cosigned the log; undefined if no witness is configured. */
  readonly cosigned?: (() => Promise<number>) | undefined;
}

/**
 * Registers metrics of the log: its position, reachability and clock skew, its open event streams, and how far
 * projections and witness lag behind.
 */
export function observeLog(registry: Registry, sources: LogSources): void {
  const { store, projector, load, awaySince, skewMs, clock, cosigned } = sources;
  const head = async (): Promise<number> => (await store.head()).position;
  lookUp(registry, [
    ["reachlog_log_position", "Position of the last event.", head],
    [
      "reachlog_projection_lag_events",
      "Events that the projections have not folded.",
      async () => Math.max(0, (await head()) - projector.position),
    ],
    ["reachlog_event_streams", "Streams of events and exports that are open.", () => load.streams],
    [
      "reachlog_log_away_seconds",
      "How long the log has been out of reach; 0 while it is in reach.",
      () => Math.max(0, clock() - (awaySince() ?? Infinity)) / 1_000,
    ],
    [
      "reachlog_clock_skew_seconds",
      `How far this machine's clock is ahead of the log's; no runs beyond ${CLOCK_SKEW_MS_MAX / 1_000} either way.`,
      () => skewMs() / 1_000,
    ],
  ]);
  const folded =
    "Share of the log that each projection has folded; below 1 only after a start with a changed projection.";
  lookUpEach(registry, ["reachlog_projection_folded_ratio", folded, ["projection"]], function* () {
    const shares = projector.folding();
    for (const name of PROJECTION_NAMES) yield [{ projection: name }, shares.get(name) ?? 1];
  });
  if (cosigned === undefined) return;
  const lag = async (): Promise<number> => Math.max(0, (await head()) - (await cosigned()));
  lookUp(registry, [["reachlog_witness_lag_events", "Events that the witness has not cosigned.", lag]]);
}

export interface InstanceSources {
  /** The instances that serve this log now, this one first. */
  readonly instances: () => readonly Instance[];
  /** Returns each role that only one instance may hold, with the id of its present holder. */
  readonly roles: () => Promise<Readonly<Record<string, string>>>;
  readonly delivery: Delivery;
}

/** Registers metrics of the log's instances, and of the roles that this instance holds. */
export function observeInstances(registry: Registry, { instances, roles, delivery }: InstanceSources): void {
  const always = [...delivery.configured.map(ROLES.dispatcher), ROLES.retention, ROLES.signedHeads];
  const serving = "Instances that serve this log, as this one sees it.";
  lookUp(registry, [["reachlog_instances", serving, () => instances().length]]);
  lookUpEach(registry, ["reachlog_role_held", "1 if this instance has the role.", ["role"]], async function* () {
    const holders = await roles();
    for (const role of always) yield [{ role }, holders[role] === instances()[0]?.id ? 1 : 0];
  });
}
