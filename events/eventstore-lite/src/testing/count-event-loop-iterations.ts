/** Returns how often the event loop went round while `work` ran: each time other work of the thread had its turn. */
export async function countLoopIterations(work: () => Promise<unknown>): Promise<number> {
  let count = 0;
  let isDone = false;
  const goRound = (): void => {
    if (isDone) return;
    count++;
    setImmediate(goRound);
  };
  setImmediate(goRound);
  await work();
  isDone = true;
  return count;
}
