/** Yields to the event loop, so that timers and sockets run. Awaiting a settled promise would not let them run. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Time that one turn of the event loop may take before {@link endLongTurn} yields. */
const TURN_MS = 2;

/**
 * Time when the current turn of the event loop should end, measured from the first call in that turn; undefined if
 * there was no call.
 */
let endsAt: number | undefined;

/**
 * Begins to measure the current turn of the event loop, unless it is measured already. Returns the time at which the
 * turn should end.
 */
function countTurn(now: number): number {
  if (endsAt === undefined) {
    endsAt = now + TURN_MS;
    setImmediate(() => (endsAt = undefined));
  }
  return endsAt;
}

/**
 * Yields to other work if the current turn of the event loop has taken long, no matter which code took the time. It
 * yields once, and does not check again, so that several waiting callers get their turns in order.
 */
export async function endLongTurn(): Promise<void> {
  const now = performance.now();
  if (now < countTurn(now)) return;
  await nextTurn();
  countTurn(performance.now());
}
