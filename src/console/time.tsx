/** @jsxImportSource preact */
import type { VNode } from "preact";

/**
 * A moment as it is read without script, in UTC; the script makes it relative and local, and keeps the exact one in the
 * title.
 */
export function Time({ at }: { readonly at: string }): VNode {
  const [day, time = ""] = at.split("T");
  return (
    <time dateTime={at} title={at}>
      {day} {time.slice(0, 8)} UTC
    </time>
  );
}
