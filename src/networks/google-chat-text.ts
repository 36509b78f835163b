import { withLookAlikes } from "./look-alikes.ts";
import { truncate } from "./plain-text.ts";

/**
 * A message may have 32,000 bytes in all, and a UTF-16 unit has three at most, in UTF-8 as in JSON;
 * https://developers.google.com/workspace/chat/api/reference/rest/v1/spaces.messages/create
 */
const TEXT_UNITS_MAX = 10_000;

/**
 * Foreign text that shows as it was written. Angle brackets, of which Google makes mentions, links and emoji, become
 * look-alikes where they could be a pair; https://developers.google.com/workspace/chat/format-messages
 */
export function googleChatText(text: string): string {
  const short = truncate(text, TEXT_UNITS_MAX);
  const opens = short.indexOf("<");
  const paired = opens !== -1 && short.lastIndexOf(">") > opens;
  const flat = paired ? short.replace(/</g, "‹").replace(/>/g, "›") : short;
  return withLookAlikes(flat);
}
