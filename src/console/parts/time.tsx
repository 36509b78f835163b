/** @jsxImportSource preact */
import type { VNode } from "preact";

interface TimeProps {
  readonly at: string;
  /** Stays a date and a time, since its sentence does not fit "in 2 hours" or "now". */
  readonly isExact?: boolean;
}

/**
 * A moment as it is read without script, in UTC; the script makes it local, relative unless it is exact, and keeps the
 * exact one in the title.
 */
export function Time({ at, isExact = false }: TimeProps): VNode {
  const [day, time = ""] = at.split("T");
  return (
    <time dateTime={at} title={at} data-exact={isExact ? "" : undefined}>
      {day} {time.slice(0, 8)} UTC
    </time>
  );
}
