import { problems } from "./problem.ts";
import { EITHER } from "../../platform/list-words.ts";

/** The value of the query's member `name`, which is one of `values`. Throws the problem 422. */
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
