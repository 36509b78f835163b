import type { ChannelName } from "../../../events/channel.ts";
import type { Deliveries } from "../../../projections/deliveries.ts";
import { decideLetter, findDeadLetters, type DeadLetter } from "../../delivery/dead-letters.ts";
import type { NewEvent } from "../../log/event-log.ts";
import { configOf, EXIT, usageError, type Terminal } from "../command.ts";
import { COMMAND_METADATA, openExistingLog, openSession } from "../log-session.ts";
import { printable } from "../table.ts";

/** Which dead letters an operator means. */
export interface Choice {
  readonly all: boolean;
  readonly ids: readonly string[];
  readonly channels: readonly ChannelName[];
}

/** Throws a ServiceError (usage) unless it is all letters or some that are named. */
export function choiceOf(action: string, { all, ids, channels }: Choice): Choice {
  if (all === ids.length > 0) throw usageError(`${action} wants --all or event ids`);
  return { all, ids, channels };
}

export type Decision = NewEvent<"DispatchRetryRequested" | "DispatchDiscarded">;

/**
 * Decides of the letters chosen and says of how many. Answers the exit code: a fault where one that was named is no
 * dead letter, or was decided by somebody else at the same moment.
 */
export async function decideLetters(
  terminal: Terminal,
  choice: Choice,
  decision: {
    readonly done: string;
    /** Why nothing is decided of a letter: the line that says so, once for all of which it is true. */
    hindranceOf?(letter: DeadLetter, states: Deliveries): string | undefined;
    of(letter: DeadLetter): Decision;
  },
): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const { eventLog, projector } = await openSession(stack, await openExistingLog(configOf(terminal)));
  const found = await findDeadLetters(eventLog.store);
  const letters = found.filter(({ channel }) => choice.channels.includes(channel));
  const meant = choice.all ? letters : letters.filter(({ event_id }) => choice.ids.includes(event_id));
  const states = projector.state("deliveries");
  const hindrances = new Set<string>();
  const chosen = meant.filter((letter) => {
    const hindrance = decision.hindranceOf?.(letter, states);
    if (hindrance !== undefined) hindrances.add(hindrance);
    return hindrance === undefined;
  });
  const won = await Promise.all(
    chosen.map((letter) => decideLetter(eventLog, letter, decision.of(letter), COMMAND_METADATA)),
  );
  const count = won.filter(Boolean).length;
  terminal.out(`${count} ${decision.done}\n`);
  for (const line of hindrances) terminal.err(`${line}\n`);
  const unknown = choice.ids.filter((id) => !meant.some(({ event_id }) => event_id === id));
  for (const id of unknown) terminal.err(`${printable(id)} is no dead letter\n`);
  const lost = won.length - count;
  if (lost > 0) terminal.err(`of ${lost} somebody else decided at the same moment\n`);
  const isDone = unknown.length === 0 && hindrances.size === 0 && (choice.all || lost === 0);
  return isDone ? EXIT.ok : EXIT.fault;
}
