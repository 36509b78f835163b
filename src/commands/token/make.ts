import { createHash, randomBytes } from "node:crypto";
import { unfitName } from "../../config/tokens.ts";
import { EXIT, UsageError, type Terminal } from "../command.ts";
import { appendEntry, tokensFileOf } from "./tokens-file.ts";
import { tokenId } from "./token-id.ts";

/** 256 bits: nobody guesses it, and a plain hash of it is as good as a slow one. */
const TOKEN_BYTES = 32;

/** Lets scanners for leaked secrets find one, and people tell what it is. */
const PREFIX = "reachlog_";

export function make(terminal: Terminal, name: string, { add, json }: { add: boolean; json: boolean }): number {
  const unfit = unfitName(name);
  if (unfit !== undefined) throw new UsageError(unfit);
  const file = tokensFileOf(terminal);
  if (add && file === undefined) throw new UsageError("--add wants API_TOKENS_FILE to be set");
  const token = `${PREFIX}${randomBytes(TOKEN_BYTES).toString("base64url")}`;
  const sha256 = createHash("sha256").update(token).digest("hex");
  const entry = `${name}:sha256:${sha256}`;
  if (add && file !== undefined) appendEntry(file, entry);
  if (json) {
    terminal.out(`${JSON.stringify({ name, id: tokenId(sha256), token, entry, added: add })}\n`);
    return EXIT.ok;
  }
  terminal.out(`token  ${token}\nid     ${tokenId(sha256)}\nentry  ${entry}\n`);
  terminal.err(add ? `\nThe entry is in ${file}.\n${ONCE}` : `\n${WHERE}${ONCE}`);
  return EXIT.ok;
}

const WHERE = `Configure the entry: API_TOKENS=…,ENTRY and a restart, or as a line of
API_TOKENS_FILE, which a running service takes over.
`;

const ONCE = `The token is shown this once. The caller sends it as "Authorization: Bearer TOKEN".
`;
