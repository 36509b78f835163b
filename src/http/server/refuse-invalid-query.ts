import { problems, type Problem } from "./problem.ts";
import { EITHER } from "../../platform/format-numbers-and-lists.ts";
import { ServiceError } from "../../platform/service-error.ts";

/**
 * Returns the result of `parse`. If it throws a `usage` error, throws the problem that `refuse` makes of the error's
 * message.
 */
export function parseGiven<Result>(parse: () => Result, refuse: (message: string) => Problem): Result {
  const rethrow = (fault: unknown): never => {
    throw fault instanceof ServiceError && fault.kind === "usage" ? refuse(fault.message) : fault;
  };
  try {
    const parsed = parse();
    return parsed instanceof Promise ? (parsed.catch(rethrow) as Result) : parsed;
  } catch (fault) {
    return rethrow(fault);
  }
}

/** Returns the problem of an invalid query, for {@link parseGiven}. */
export const refuseQuery = (message: string): Problem => problems.invalid([{ path: "?", message }]);

/** Returns the member `name` of a query, which must be one of `values`. Throws the problem 422 if it is not. */
export function choiceIn<Value extends string>(
  query: URLSearchParams,
  name: string,
  values: readonly Value[],
  fallback: Value,
): Value {
  const given = query.get(name) ?? fallback;
  const value = values.find((one) => one === given);
  if (value !== undefined) return value;
  throw problems.invalid([{ path: `?${name}`, message: `Expected ${EITHER.format(values)}` }]);
}
