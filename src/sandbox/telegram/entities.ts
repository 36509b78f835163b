import type { Rendered } from "../rendered.ts";

/** Characters that show nothing. */
const INVISIBLE = /[\u200b-\u200d\u2060]/g;

const ADDRESS = /https?:\/\/[\w-]+(?:\.[\w-]+)+(?:[/?#:]\S*)?/gi;

/** https://core.telegram.org/bots/api#messageentity; nobody has to ask for them, and within an address there are none. */
const ENTITIES = [
  { mark: "mention", pattern: /(?<![\p{L}\p{N}_])@[A-Za-z0-9_]{2,32}(?![\p{L}\p{N}_])/gu },
  {
    mark: "bot_command",
    pattern: /(?<![\p{L}\p{N}_/<>])\/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?(?![\p{L}\p{N}_/<>])/gu,
  },
];

/** A text without parse mode as the members of a chat see it. */
export function renderTelegram(text: string): Rendered {
  const outside = text.replace(ADDRESS, (address) => " ".repeat(address.length));
  const marks = ENTITIES.flatMap(({ mark, pattern }) => (outside.match(pattern) ?? []).map(() => mark));
  return { text: text.replace(INVISIBLE, ""), marks };
}
