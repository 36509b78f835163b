import type { LogStore } from "../../../events/event-types-and-codec.ts";
import type { ProjectionName } from "../../../projections/all.ts";
import { foldTo, type FoldedTo } from "../../projector/fold-to-moment.ts";
import { checkMoment, type Moment } from "../../projector/parse-moment.ts";
import { restoreStates } from "../../projector/restore-states.ts";
import type { Terminal } from "./terminal-answers-and-exit-codes.ts";
import { withProgress } from "./progress.ts";

/** The option `--as-of` of commands that can answer for an earlier moment. */
export const AS_OF_OPTION = [
  "--as-of <moment>",
  "as it was at an earlier moment: a time in ISO 8601, such as 2026-11-21T09:00:00Z; a day, such as 2026-11-21, " +
    "which means its end; or a position, which means after that event (0: before the first). A day, or a time " +
    "without Z or offset, is in QUOTA_TIMEZONE. A future time means now",
] as const;

/**
 * Folds projections up to an earlier moment. Shows the progress, and saves snapshots so that the next time is faster.
 */
export async function foldToMoment<Name extends ProjectionName>(
  terminal: Terminal,
  store: LogStore & { readonly erasedTo: number },
  names: readonly Name[],
  moment: Moment,
): Promise<FoldedTo<Name>> {
  await checkMoment(store, moment);
  const { position: head } = await store.head();
  return withProgress(terminal, "reading", Math.min(moment.to ?? head, head), (onProgress) =>
    foldTo(store, names, { ...moment, keepSince: store.erasedTo, onProgress }),
  );
}

/** Returns the contacts as of now, folded from the newest snapshot, because folding the whole log takes seconds. */
export async function contactsNow(store: LogStore): Promise<FoldedTo<"contacts">> {
  const { states, position, time } = await restoreStates(store, { names: ["contacts"] });
  return { states: states.all(), position, time };
}
