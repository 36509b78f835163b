import type { ChannelName } from "../../../events/channel.ts";
import type { LetterSelection, DecideDeps, Decided, NotAppliedReason } from "../../delivery/dead-letters.ts";
import { configOf, EXIT, usageError, type Terminal } from "../command.ts";
import { openSession } from "../log-session.ts";
import { printable } from "../table.ts";

/** Which dead letters the arguments mean. */
interface Given {
  readonly all: boolean;
  readonly ids: readonly string[];
  readonly channels: readonly ChannelName[];
}

/** Throws a ServiceError (usage) unless it is all letters or some that are named. */
export function toSelection(action: string, { all, ids, channels }: Given): LetterSelection {
  if (all === ids.length > 0) throw usageError(`${action} wants --all or event ids`);
  return { ids: all ? undefined : ids, channels };
}

/**
 * Decides of the letters chosen and says of how many. Answers the exit code: a fault where one that was named is no
 * dead letter, or was decided by somebody else at the same moment.
 */
export async function decideByCommand(
  terminal: Terminal,
  selection: LetterSelection,
  { done, json }: { readonly done: string; readonly json: boolean },
  decide: (deps: DecideDeps) => Promise<Decided>,
): Promise<number> {
  await using session = await openSession(configOf(terminal));
  const decided = await decide(session);
  if (json) terminal.out(`${JSON.stringify(decided)}\n`);
  else {
    terminal.out(`${decided.done} ${done}\n`);
    for (const line of linesOf(decided)) terminal.err(`${line}\n`);
  }
  const faults = decided.left.filter(({ why }) => why !== "decided_meanwhile" || selection.ids !== undefined);
  return faults.length === 0 ? EXIT.ok : EXIT.fault;
}

/** Why letters were left, once for all of which it is true; each that is none by itself. */
function linesOf({ left }: Decided): readonly string[] {
  const hindrances = new Set(
    left.flatMap(({ channel, why }) => (channel === null ? [] : (hindered(channel, why) ?? []))),
  );
  const unknown = left.filter(({ why }) => why === "no_dead_letter");
  const lost = left.filter(({ why }) => why === "decided_meanwhile").length;
  return [
    ...hindrances,
    ...unknown.map(({ event_id }) => `${printable(event_id)} is no dead letter`),
    ...(lost === 0 ? [] : [`of ${lost} somebody else decided at the same moment`]),
  ];
}

function hindered(channel: ChannelName, why: NotAppliedReason): string | undefined {
  if (why === "suspended") {
    return `${channel} is suspended and would turn them away: reachlog deliveries resume ${channel}`;
  }
  if (why !== "may_double") return undefined;
  return (
    `an attempt at letters of ${channel} may have arrived, and a repeat would count twice now: ` +
    "with --accept-doubles they are sent again all the same"
  );
}
