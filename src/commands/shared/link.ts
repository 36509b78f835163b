import { usageError } from "./command.ts";

/** A link as an operator names it: `domain/short_code`, with or without a scheme. */
export function linkOf(text: string): string {
  const link = text.replace(/^https?:\/\//i, "");
  if (!/^[^/]+\/./.test(link)) throw usageError("a link is written domain/short_code");
  return link;
}
