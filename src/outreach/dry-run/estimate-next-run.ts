import { DEFAULT_CAMPAIGN } from "../../../events/campaign.ts";
import { usedAt } from "../../../projections/quota.ts";
import type { RunSummary } from "../../../projections/runs.ts";
import { describeSelection } from "../../history/sentences/outreach.ts";
import { formatSentence } from "../../history/sentences/sentence-parts.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import type { PageMoment } from "../../projector/moment-of-console-page.ts";
import { listOpenCampaigns } from "../campaigns/read-campaigns.ts";
import { dayIn, momentIn } from "../quota-day.ts";
import { remaining, type RunSelection } from "../quota-and-reasons-to-end-run.ts";

interface StartSettings {
  readonly dailyLimit: number;
  readonly timezone: string;
  readonly template: { readonly name: string | undefined } | undefined;
}

/** A dry run that has ended. */
interface EndedDryRun {
  /** Limits of the dry run. `recipients`: number of recipients that its caller named. */
  readonly limits: RunSelection & { readonly recipients?: number };
  readonly sends: number;
  readonly end: { readonly at: string; readonly position: number };
}

/** Limits of a run as a form's fields hold them; the service checks them when the run starts. */
type Fields = Partial<Record<keyof RunSelection, string>>;

/** Reads what a dry run says about a run that starts now. */
export function readStart(moment: PageMoment<"runs">, settings: StartSettings, { limits, sends, end }: EndedDryRun) {
  const later = [...moment.state("runs").started.values()].filter((run) => !run.dry_run && run.position > end.position);
  const outdated = findOutdated(moment, settings, { end, later });
  return {
    /** Number of the last run that began after the dry run, so that the dry run's findings may be outdated. */
    ranSince: later.at(-1)?.number,
    /** Why the dry run's figures hold no longer. Undefined if they hold. */
    outdated,
    /** True if the dry run's campaign has not ended. */
    isOpen: listOpenCampaigns(moment.stateNow("campaigns")).includes(limits.campaign ?? DEFAULT_CAMPAIGN),
    estimateStart: (fields: Fields) =>
      estimateStart(moment, settings, toSelection(fields), { limits, sends, outdated }),
  };
}

type Outdated = "other_day" | "sent_since" | undefined;

interface Later {
  readonly end: EndedDryRun["end"];
  /** Runs that began after the dry run. */
  readonly later: readonly RunSummary[];
}

function findOutdated({ now }: PageMoment, { timezone }: StartSettings, { end, later }: Later): Outdated {
  if (dayIn(timezone, Date.parse(end.at)) !== dayIn(timezone, now)) return "other_day";
  const hasSent = later.some((run) => run.end !== null && run.end.sent + run.end.failed + run.end.in_doubt > 0);
  return hasSent ? "sent_since" : undefined;
}

type Findings = Omit<EndedDryRun, "end"> & { readonly outdated: Outdated };

function toSelection({ limit = "", campaign, ...others }: Fields): RunSelection {
  return {
    ...(others as RunSelection),
    ...omitUndefined({
      limit: /^[1-9]\d*$/.test(limit) ? Number(limit) : undefined,
      campaign: campaign === DEFAULT_CAMPAIGN ? undefined : campaign,
    }),
  };
}

function estimateStart({ stateNow, now }: PageMoment, settings: StartSettings, wanted: RunSelection, dry: Findings) {
  const quota = stateNow("quota");
  const day = momentIn(settings.timezone, now);
  const difference = findDifference(wanted, dry);
  const found = difference === undefined ? dry.sends : Infinity;
  /** Maximum number of messages that the run sends now. */
  const most = Math.min(wanted.limit ?? Infinity, found, remaining({ quota }, settings, day));
  const { campaign, limit: _limit, ...others } = wanted;
  return {
    most,
    /**
     * True if the run would send to all recipients that the dry run found, and to no others. False if a limit or the
     * quota allows fewer.
     */
    isExact: most === found,
    /** Why the dry run does not say who gets a message. Undefined if it does. */
    difference,
    /** Number of the day's messages that are used once the run has sent all of its own. */
    usedAfter: usedAt(quota, day) + most,
    /** Name of the campaign. Undefined if there is only one. */
    campaign: listOpenCampaigns(stateNow("campaigns")).length < 2 ? undefined : (campaign ?? DEFAULT_CAMPAIGN),
    /** Name of the text of `default`. Undefined if it has none; the text of another campaign has the campaign's name. */
    textName: campaign === undefined ? settings.template?.name : undefined,
    /** Other limits as text, such as ` for variant A`; empty without any. */
    only: formatSentence(describeSelection(others)),
  };
}

type Difference = Outdated | "other_campaign" | "other_limits";

function findDifference(wanted: RunSelection, { limits, sends, outdated }: Findings): Difference {
  if (wanted.campaign !== limits.campaign) return "other_campaign";
  const { limit } = limits;
  const isCutShort = limit !== undefined && sends >= limit && (wanted.limit ?? Infinity) > limit;
  const isOther = (["variant", "basis", "source"] as const).some((name) => wanted[name] !== limits[name]);
  return isCutShort || isOther || limits.recipients !== undefined ? "other_limits" : outdated;
}
