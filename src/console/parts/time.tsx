/** @jsxImportSource preact */
import type { VNode } from "preact";

interface TimeProps {
  /** Undefined if it is not known. Nothing is rendered then. */
  readonly at: string | undefined;
  /** True if it stays a date and a time, because its sentence does not fit "in 2 hours" or "now". */
  readonly isExact?: boolean;
  /** The words before it. */
  readonly before?: string;
}

/**
 * A moment, in UTC without the script. The script shows it in local time, relative unless it is exact, with the exact
 * moment in the title.
 */
export function Time({ at, isExact = false, before = "" }: TimeProps): VNode | null {
  if (at === undefined) return null;
  const [day, time = ""] = at.split("T");
  return (
    <>
      {before}
      <time dateTime={at} title={at} data-exact={isExact ? "" : undefined}>
        {day} {time.slice(0, 8)} UTC
      </time>
    </>
  );
}
