/** Lets timers and sockets have their turn; awaiting a settled promise would not. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** How long a turn of the event loop may take. */
const TURN_MS = 2;

/** When the present one should end, counted from when it was first asked; undefined: nobody has asked in it. */
let endsAt: number | undefined;

function isTurnOver(): boolean {
  const now = performance.now();
  if (endsAt === undefined) {
    endsAt = now + TURN_MS;
    setImmediate(() => (endsAt = undefined));
  }
  return now >= endsAt;
}

/** Lets all others have their turn where this one has gone on for long, whoever else has used it. */
export async function endLongTurn(): Promise<void> {
  while (isTurnOver()) await nextTurn();
}
