/** Lets timers and sockets have their turn; awaiting a settled promise would not. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** How long a turn of the event loop may take. */
const TURN_MS = 2;

/** When the present one should end, counted from when it was first asked; undefined: it was not asked in this one. */
let endsAt: number | undefined;

/** Counts the present turn from now on, unless it is counted already. Answers when it should end. */
function countTurn(now: number): number {
  if (endsAt === undefined) {
    endsAt = now + TURN_MS;
    setImmediate(() => (endsAt = undefined));
  }
  return endsAt;
}

/**
 * Lets all others have their turn where this one has gone on for long, whatever else has used it. Once: a caller that waits goes on
 * then, or the first of several that wait would have each turn for itself.
 */
export async function endLongTurn(): Promise<void> {
  const now = performance.now();
  if (now < countTurn(now)) return;
  await nextTurn();
  countTurn(performance.now());
}
