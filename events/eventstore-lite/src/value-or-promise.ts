/**
 * A result that is available now or later. A promise costs the caller a turn, so none is made if nothing has to be
 * waited for.
 */
export type Awaitable<Result> = Result | Promise<Result>;

/** Passes a result to the next function: at once if it is available, otherwise when its promise resolves. */
export function andThen<Result, Next>(
  result: Awaitable<Result>,
  goOn: (result: Result) => Awaitable<Next>,
): Awaitable<Next> {
  return result instanceof Promise ? result.then(goOn) : goOn(result);
}
