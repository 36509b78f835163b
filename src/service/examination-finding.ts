/**
 * State of an examined part. `missing`: it does not exist yet, which is no fault. `wrong`: the operator must correct
 * it.
 */
export type FindingState = "ok" | "warning" | "missing" | "wrong";

/** The result of one examination. `detail` says what was found and, unless it is `ok`, what to do about it. */
export interface Finding {
  readonly what: string;
  readonly state: FindingState;
  readonly detail: string;
}

/**
 * Result of a check that did not throw. A string is the `detail` of an `ok` finding; an object holds the `detail` of a
 * `missing` one.
 */
type Judged = string | { readonly missing: string };

/** Runs `check` and returns its finding; `wrong` if it throws. */
export async function finding(what: string, check: () => Judged | Promise<Judged>): Promise<Finding> {
  try {
    const judged = await check();
    return typeof judged === "string"
      ? { what, state: "ok", detail: judged }
      : { what, state: "missing", detail: judged.missing };
  } catch (fault) {
    return { what, state: "wrong", detail: fault instanceof Error ? fault.message : String(fault) };
  }
}
