import type { EventStore } from "eventstore-lite";
import type { Event } from "../../../events/catalog.ts";
import type { ProjectionName, StateOf } from "../../../projections/all.ts";
import { foldTo, type FoldedTo } from "../../projector/fold-to.ts";
import { checkMoment, type Moment, type Place } from "../../projector/moment.ts";
import type { EncryptedLog } from "../../privacy/encrypted-log.ts";
import { restoreStates } from "../../projector/restore.ts";
import type { Terminal } from "./command.ts";
import { startProgress } from "./progress.ts";

/** The same wherever an answer can be of an earlier moment. */
export const AS_OF_OPTION = [
  "--as-of <moment>",
  "as it was at an earlier moment: a time in ISO 8601, such as 2026-11-21T09:00:00Z; a day, such as 2026-11-21, " +
    "which means its end; or a position, which means after that event (0: before the first). A day, and a time " +
    "without Z or offset, is one of QUOTA_TIMEZONE. A time to come means now",
] as const;

/** The states at a moment; long work shows on the terminal, and what it passes is kept for the next time. */
export async function foldToMoment<Name extends ProjectionName>(
  terminal: Terminal,
  store: EventStore<Event> & Pick<EncryptedLog, "erasedTo">,
  names: readonly Name[],
  moment: Moment,
): Promise<FoldedTo<Name>> {
  await checkMoment(store, moment);
  const { position: head } = await store.head();
  const progress = startProgress(terminal, "reading", Math.min(moment.to ?? head, head));
  const folded = await foldTo(store, names, { ...moment, keepSince: store.erasedTo, onProgress: progress.update });
  progress.end();
  return folded;
}

/** A state as it is now, from its snapshot on, as a service has it after its start: to open a whole list takes seconds. */
export async function stateNow<Name extends ProjectionName>(
  store: EventStore<Event>,
  name: Name,
): Promise<Place & { readonly state: StateOf<Name> }> {
  const { states, position, time } = await restoreStates(store, { names: [name] });
  return { state: states.get(name), position, time };
}

/** The moment that an answer is of, for people. */
export function describeMoment({ position, time }: Place): string {
  return `as of position ${position}, ${time ?? "before the first event"}`;
}

/** The same for programs. */
export function toAsOfJson({ position, time }: Place): { readonly position: number; readonly time: string | null } {
  return { position, time: time ?? null };
}
