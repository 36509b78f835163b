/** `missing`: the thing does not exist yet, which is no fault. `wrong`: it has to be corrected. */
export type FindingState = "ok" | "warning" | "missing" | "wrong";

/** The result of one examination; `detail` says what to do about it. */
export interface Finding {
  readonly what: string;
  readonly state: FindingState;
  readonly detail: string;
}

/** A string is the detail of a result that is ok. */
type Judged = string | { readonly missing: string };

/** Returns the result of `check`; `wrong` if it throws. */
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
