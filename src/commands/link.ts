import { STREAMS } from "../log/event-log.ts";
import { usageError } from "./command.ts";

/** A link as an operator names it: `domain/short_code`, with or without a scheme. */
export function linkOf(text: string): string {
  const link = text.replace(/^https?:\/\//i, "");
  if (!/^[^/]+\/./.test(link)) throw usageError("a link is written domain/short_code");
  return link;
}

/** The stream that holds the clicks of `domain/short_code`. */
export function streamOfLink(link: string): string {
  const slash = link.indexOf("/");
  return STREAMS.link(link.slice(0, slash), link.slice(slash + 1));
}
