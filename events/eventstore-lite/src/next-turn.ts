/** Lets timers and sockets run; awaiting a settled promise would not. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** How long a turn of the event loop may take. */
const TURN_MS = 2;

/** When the current turn should end, measured from the first call in it; undefined if there was none. */
let endsAt: number | undefined;

/** Begins to measure the current turn, unless it is measured already. Returns when the turn should end. */
function countTurn(now: number): number {
  if (endsAt === undefined) {
    endsAt = now + TURN_MS;
    setImmediate(() => (endsAt = undefined));
  }
  return endsAt;
}

/**
 * Yields to all other work if the current turn has taken long, no matter which code used it. Yields once only:
 * otherwise the first of several waiting callers would get each next turn for itself.
 */
export async function endLongTurn(): Promise<void> {
  const now = performance.now();
  if (now < countTurn(now)) return;
  await nextTurn();
  countTurn(performance.now());
}
