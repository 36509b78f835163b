/** @jsxImportSource preact */
import type { VNode } from "preact";

interface TimeProps {
  /** Undefined: it is not known, and nothing is rendered. */
  readonly at: string | undefined;
  /** Stays a date and a time, since its sentence does not fit "in 2 hours" or "now". */
  readonly isExact?: boolean;
  /** The words before it. */
  readonly before?: string;
}

/**
 * A moment as it is read without script, in UTC; the script makes it local, relative unless it is exact, and keeps the
 * exact one in the title.
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
