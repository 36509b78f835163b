import { given, type RawEnvironment } from "./environment.ts";
import type { Report } from "./error.ts";
import type { Variable } from "./schema.ts";

/** Half a credential is a mistake, not a channel left out. */
export function needs(name: Variable, other: Variable, env: RawEnvironment, report: Report): void {
  if (given(env, name) !== undefined && given(env, other) === undefined) {
    report.fault(other, `missing, but ${name} is set`, `both ${name} and ${other}, or neither`);
  }
}

/** Settings that are only used together: each that is missing is told once. */
export function allOrNone(names: readonly Variable[], env: RawEnvironment, report: Report): void {
  const set = names.find((name) => given(env, name) !== undefined);
  if (set === undefined) return;
  for (const missing of names.filter((name) => given(env, name) === undefined)) {
    report.fault(missing, `missing, but ${set} is set`, `all of ${names.join(", ")}, or none`);
  }
}
