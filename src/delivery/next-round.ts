/** Resolves once the answers that have come by now are read: what they lead to is done together. */
export function nextRound(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
