/** `missing`: it is not there yet, and nothing is wrong with that; `wrong`: what has to be corrected. */
export type FindingState = "ok" | "warning" | "missing" | "wrong";

/** One thing looked at; `detail` says what to do about it. */
export interface Finding {
  readonly what: string;
  readonly state: FindingState;
  readonly detail: string;
}

/** A detail alone is that of what is ok. */
type Judged = string | { readonly missing: string };

/** The result of `check`; wrong if it throws. */
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
