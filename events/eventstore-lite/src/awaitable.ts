/** A result that is there, or will be: a promise costs the caller a turn, so none is made where nothing is waited for. */
export type Awaitable<Result> = Result | Promise<Result>;

/** Goes on with a result at once where it is there. */
export function andThen<Result, Next>(
  result: Awaitable<Result>,
  goOn: (result: Result) => Awaitable<Next>,
): Awaitable<Next> {
  return result instanceof Promise ? result.then(goOn) : goOn(result);
}
