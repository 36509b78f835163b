/**
 * Outcome that the story, the demo's made-up history, plans for a recipient. `left`: no run has come to the recipient
 * yet.
 */
export type Fate = "sent" | "failed" | "in_doubt" | SkipFate | "left";
export type SkipFate = "no_consent" | "protected" | "cannot_receive_dm" | "invalid_recipient";

/**
 * True if a run writes to a recipient with this fate: it tries to send a message, even if that fails or stays in doubt.
 */
export function isMessage(fate: Fate): boolean {
  return ["sent", "failed", "in_doubt"].includes(fate);
}

export interface PlannedRun {
  /** Number of the run, from 1. */
  readonly number: number;
  readonly daysAgo: number;
  readonly campaign: "autumn" | "winter";
  /** Outcome of each recipient that the run takes, in order. */
  readonly fates: readonly Fate[];
  /** How the run ends: `cut_off` by a restart, `stopped` by the operator, else at the limit that its caller set. */
  readonly end: "limit" | "cut_off" | "stopped";
  /** True if X makes the run wait for four minutes. */
  readonly waits: boolean;
}

export const RECIPIENTS = 640;
const RUNS = 36;
/** Days without a run, as numbers of days before today: one a week. */
const REST_DAYS: readonly number[] = [4, 11, 18, 25, 32, 39];
const FIRST_WINTER_RUN = 23;
const CUT_OFF_RUN = 29;
const STOPPED_RUN = 17;
const WAITING_RUNS: readonly number[] = [8, 21, 36];

/** Numbers of messages sent and of recipients skipped by the newest runs, by the run's number. */
const NEWEST: Readonly<Record<number, readonly [sent: number, skipped: number]>> = {
  32: [13, 1],
  33: [15, 1],
  34: [12, 0],
  35: [15, 2],
  36: [14, 4],
};
const CUT_OFF_COUNTS = [8, 3] as const;
const SENT = [13, 14, 12, 15, 11];
const SKIPPED = [2, 1, 3, 2, 2];
const SKIPS: readonly SkipFate[] = ["no_consent", "protected", "cannot_receive_dm", "no_consent", "invalid_recipient"];

/** Plans the story's runs, the oldest first. */
export function planRuns(): readonly PlannedRun[] {
  const days = Array.from({ length: RUNS + REST_DAYS.length }, (_, day) => day).filter(
    (day) => !REST_DAYS.includes(day),
  );
  let skips = 0;
  return days.toReversed().map((daysAgo, at): PlannedRun => {
    const number = at + 1;
    const [sent, skipped] =
      number === CUT_OFF_RUN ? CUT_OFF_COUNTS : (NEWEST[number] ?? [SENT[at % 5]!, SKIPPED[at % 5]!]);
    const fates: Fate[] = Array<Fate>(sent).fill("sent");
    for (let skip = 0; skip < skipped; skip++) insert(fates, skip, SKIPS[skips++ % SKIPS.length]!);
    if (number === RUNS) insert(fates, 5, "in_doubt");
    if (number === RUNS || (number % 3 === 1 && number !== CUT_OFF_RUN)) insert(fates, 7, "failed");
    const end = number === CUT_OFF_RUN ? "cut_off" : number === STOPPED_RUN ? "stopped" : "limit";
    const campaign = number < FIRST_WINTER_RUN ? "autumn" : "winter";
    return { number, daysAgo, campaign, fates, end, waits: WAITING_RUNS.includes(number) };
  });
}

/** Inserts a recipient's outcome among those that a run plans, at a place that depends on `nth`. */
function insert(fates: Fate[], nth: number, fate: Fate): void {
  fates.splice(2 + ((nth * 3) % Math.max(1, fates.length - 2)), 0, fate);
}
