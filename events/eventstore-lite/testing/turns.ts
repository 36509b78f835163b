/** Returns how many turns of the event loop others had while `work` ran. */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isDone = false;
  const takeTurn = (): void => {
    if (isDone) return;
    turns++;
    setImmediate(takeTurn);
  };
  setImmediate(takeTurn);
  await work();
  isDone = true;
  return turns;
}
