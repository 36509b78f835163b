import type { EventType, Folded } from "../../events/catalog.ts";
import type { Reading } from "./history.ts";

/** How a run went on: of interest to who asks for the run, and not to who asks for one of its people. */
const COURSE_TYPES: readonly EventType[] = ["RunPaused", "InboxRead", "SourceRead"];

const RUN_TYPES: readonly EventType[] = [
  ...COURSE_TYPES,
  "RunStarted",
  "DirectMessageAttempted",
  "DirectMessageSent",
  "DirectMessageSkipped",
  "DirectMessageFailed",
  "DirectMessageInDoubt",
  "RecipientRetryAllowed",
  "RunFinished",
  "RunAbandoned",
  "DryRunFinished",
];

type Told = Pick<Folded, "type" | "data">;

/** Whether it is about one person in a run, rather than of the run. */
export function isOfOnePerson({ data }: Told): boolean {
  return "run_id" in data && "recipient" in data;
}

/** The events of the runs that `roots` are about: their starts and ends, and all messages or only those among the roots. */
export async function positionsOfRuns(
  { store, to, onProgress }: Reading,
  roots: readonly Told[],
): Promise<readonly number[]> {
  const runs = new Set(roots.flatMap(runOf));
  if (runs.size === 0) return [];
  const whole = new Set(roots.filter((root) => !isOfOnePerson(root)).flatMap(runOf));
  const attempts = new Set(roots.flatMap(attemptOf));
  const belongs = (event: Told): boolean =>
    (!isOfOnePerson(event) && !COURSE_TYPES.includes(event.type)) ||
    runOf(event).some((run) => whole.has(run)) ||
    attemptOf(event).some((attempt) => attempts.has(attempt));
  const found: number[] = [];
  for await (const batch of store.readFolded({ types: RUN_TYPES, to })) {
    onProgress(batch.at(-1)?.position ?? 0);
    for (const event of batch) {
      if (runOf(event).some((run) => runs.has(run)) && belongs(event)) found.push(event.position);
    }
  }
  return found;
}

function runOf({ data }: Told): string[] {
  return "run_id" in data && data.run_id !== undefined ? [data.run_id] : [];
}

function attemptOf({ data }: Told): string[] {
  return "attempt_id" in data ? [data.attempt_id] : [];
}
