/**
 * Returns a function that waits until one of `places` places is free and takes it; disposing the result frees the
 * place.
 */
export function createGate(places: number): () => Promise<Disposable> {
  const waiting: (() => void)[] = [];
  let free = places;
  const leave = (): void => {
    const next = waiting.shift();
    if (next === undefined) free++;
    else next();
  };
  return async () => {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    return { [Symbol.dispose]: leave };
  };
}
