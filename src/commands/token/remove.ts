import { createReport } from "../../config/error.ts";
import { readTokenLines } from "../../config/tokens.ts";
import { EXIT, UsageError, type Terminal } from "../command.ts";
import { tokenId } from "./token-id.ts";
import { rewriteEntries, tokensFileOf, tokensOf } from "./tokens-file.ts";

/** Fewer digits of an id are a slip of the hand. */
const ID_DIGITS_MIN = 4;

export function remove(terminal: Terminal, id: string): number {
  if (!new RegExp(`^[0-9a-f]{${ID_DIGITS_MIN},64}$`).test(id)) {
    throw new UsageError(
      `token remove wants an id as "token list" shows it, or at least ${ID_DIGITS_MIN} digits of it`,
    );
  }
  const file = tokensFileOf(terminal);
  const { fixed, filed } = tokensOf(terminal);
  const found = filed.filter(({ sha256 }) => sha256.startsWith(id));
  const [token] = found;
  if (file === undefined || token === undefined) {
    const isFixed = fixed.some(({ sha256 }) => sha256.startsWith(id));
    terminal.err(isFixed ? "it is in API_TOKENS: take it out there, and restart\n" : "no token has this id\n");
    return EXIT.fault;
  }
  if (new Set(found.map(({ sha256 }) => sha256)).size > 1) {
    terminal.err("several tokens begin so: give more of the id\n");
    return EXIT.fault;
  }
  if (fixed.length === 0 && found.length === filed.length) {
    terminal.err(
      "it is the only token, and a service keeps the tokens it has rather than none: make another one first\n",
    );
    return EXIT.fault;
  }
  rewriteEntries(file, (line) => !holds(line, token.sha256));
  terminal.out(`${token.name} ${tokenId(token.sha256)} is removed\n`);
  return EXIT.ok;
}

/** Whether a line is the entry of this token, plain or hashed. */
function holds(line: string, sha256: string): boolean {
  const entry = line.trim();
  if (entry === "" || entry.startsWith("#")) return false;
  return readTokenLines(entry, [], createReport()).some((token) => token.sha256 === sha256);
}
