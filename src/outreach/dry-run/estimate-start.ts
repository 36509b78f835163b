import { usedAt } from "../../../projections/quota.ts";
import type { PageMoment } from "../../projector/read-as-of.ts";
import { dayIn, momentIn } from "../quota-day.ts";
import { remaining, type RunSelection } from "../run-limits.ts";

interface QuotaSettings {
  readonly dailyLimit: number;
  readonly timezone: string;
}

/** Why the figures of a dry run hold no longer. */
export type Outdated = "other_day" | "sent_since";

/** Returns why the figures of a dry run that has ended hold no longer. Undefined if they hold. */
export function findOutdated(
  { state, now }: PageMoment<"runs">,
  { timezone }: QuotaSettings,
  end: { readonly at: string; readonly position: number },
): Outdated | undefined {
  if (dayIn(timezone, Date.parse(end.at)) !== dayIn(timezone, now)) return "other_day";
  const later = [...state("runs").started.values()].filter((run) => !run.dry_run && run.position > end.position);
  const hasSent = later.some((run) => run.end !== null && run.end.sent + run.end.failed + run.end.in_doubt > 0);
  return hasSent ? "sent_since" : undefined;
}

/** A dry run whose figures may be those of the run that the caller is about to start. */
export interface PreviewedRun {
  /** Limits of the dry run. `recipients`: number of recipients that its caller named. */
  readonly limits: RunSelection & { readonly recipients?: number };
  readonly sends: number;
  readonly outdated: Outdated | undefined;
}

/**
 * Returns how many messages a run with these limits sends at most now. `isExact`: the dry run found as many recipients.
 * `difference`: why the dry run does not say who they are.
 */
export function estimateStart(
  { stateNow, now }: PageMoment,
  settings: QuotaSettings,
  wanted: RunSelection,
  dry: PreviewedRun,
) {
  const quota = stateNow("quota");
  const day = momentIn(settings.timezone, now);
  const difference = findDifference(wanted, dry);
  const found = difference === undefined ? dry.sends : Infinity;
  const most = Math.min(wanted.limit ?? Infinity, found, remaining({ quota }, settings, day));
  return { most, used: usedAt(quota, day), isExact: most === found, difference };
}

/** Why a dry run does not say who gets a message of the run that the caller is about to start. */
export type Difference = Outdated | "other_campaign" | "other_limits";

function findDifference(wanted: RunSelection, { limits, sends, outdated }: PreviewedRun): Difference | undefined {
  if (wanted.campaign !== limits.campaign) return "other_campaign";
  const { limit } = limits;
  const isCutShort = limit !== undefined && sends >= limit && (wanted.limit ?? Infinity) > limit;
  const isOther = (["variant", "basis", "source"] as const).some((name) => wanted[name] !== limits[name]);
  return isCutShort || isOther || limits.recipients !== undefined ? "other_limits" : outdated;
}
