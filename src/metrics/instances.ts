import type { Registry } from "prom-client";
import { ROLES } from "../log/role.ts";
import type { Instance } from "../log/instances.ts";
import type { Delivery } from "../delivery/delivery.ts";
import type { Clock } from "../platform/clock.ts";
import { lookUp, lookUpEach } from "./figures.ts";

export interface InstanceSources {
  /** Those that serve this log now, this one first. */
  readonly instances: () => readonly Instance[];
  /** The id of the one that has it, by each role that one has now. */
  readonly roles: () => Promise<Readonly<Record<string, string>>>;
  /** Since when the log is out of reach, in ms since the epoch. */
  readonly awaySince: () => number | undefined;
  readonly delivery: Pick<Delivery, "configured">;
  readonly clock: Clock;
}

/** Who serves the log, and what this one does for all; of the roles that somebody always has. */
export function observeInstances(registry: Registry, sources: InstanceSources): void {
  const { instances, roles, awaySince, delivery, clock } = sources;
  const always = [...delivery.configured.map(ROLES.dispatcher), ROLES.retention, ROLES.signedHeads];
  lookUp(
    registry,
    "reachlog_instances",
    "Instances that serve this log, as this one sees it.",
    () => instances().length,
  );
  const held = {
    name: "reachlog_role_held",
    help: "1 where this instance has the role.",
    labelNames: ["role"],
  } as const;
  lookUpEach(registry, held, async (gauge) => {
    const holders = await roles();
    for (const role of always) gauge.set({ role }, holders[role] === instances()[0]?.id ? 1 : 0);
  });
  lookUp(registry, "reachlog_log_away_seconds", "For how long the log has been out of reach; 0: it is not.", () => {
    const since = awaySince();
    return since === undefined ? 0 : Math.max(0, clock() - since) / 1_000;
  });
}
