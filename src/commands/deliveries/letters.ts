import type { ChannelName } from "../../../events/channel.ts";
import { decideLetter, findDeadLetters, type DeadLetter } from "../../delivery/dead-letters.ts";
import { createJournal, type Fact } from "../../journal.ts";
import { makeId } from "../../clock.ts";
import { configOf, EXIT, UsageError, type Terminal } from "../command.ts";
import { COMMAND_CAUSE, openExistingLog } from "../log-session.ts";
import { printable } from "../table.ts";

/** Which dead letters an operator means. */
export interface Choice {
  readonly all: boolean;
  readonly ids: readonly string[];
  readonly channels: readonly ChannelName[];
}

/** Throws UsageError unless it is all letters or some that are named. */
export function choiceOf(action: string, { all, ids, channels }: Choice): Choice {
  if (all === ids.length > 0) throw new UsageError(`${action} wants --all or event ids`);
  return { all, ids, channels };
}

export type Decision = Fact<"ChannelDispatchRetryRequested" | "ChannelDispatchDiscarded">;

/**
 * Decides of the letters chosen and tells of how many. Answers the exit code: a fault where one that was named is no
 * dead letter, or was decided by somebody else at the same moment.
 */
export async function decideLetters(
  terminal: Terminal,
  choice: Choice,
  decision: { readonly done: string; of(letter: DeadLetter): Decision },
): Promise<number> {
  await using store = await openExistingLog(configOf(terminal));
  const journal = createJournal(store, makeId);
  const letters = (await findDeadLetters(store)).filter(({ channel }) => choice.channels.includes(channel));
  const chosen = choice.all ? letters : letters.filter(({ event_id }) => choice.ids.includes(event_id));
  const won = await Promise.all(
    chosen.map((letter) => decideLetter(journal, letter, decision.of(letter), COMMAND_CAUSE)),
  );
  const count = won.filter(Boolean).length;
  terminal.out(`${count} ${decision.done}\n`);
  const unknown = choice.ids.filter((id) => !chosen.some(({ event_id }) => event_id === id));
  for (const id of unknown) terminal.err(`${printable(id)} is no dead letter\n`);
  const lost = won.length - count;
  if (lost > 0) terminal.err(`of ${lost} somebody else decided at the same moment\n`);
  return unknown.length === 0 && (choice.all || lost === 0) ? EXIT.ok : EXIT.fault;
}
