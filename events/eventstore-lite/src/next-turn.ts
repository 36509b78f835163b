/** Lets timers and sockets have their turn; awaiting a settled promise would not. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
