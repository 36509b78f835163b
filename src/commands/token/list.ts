import { EXIT, type Terminal } from "../command.ts";
import { table } from "../table.ts";
import { tokenId } from "./token-id.ts";
import { tokensOf } from "./tokens-file.ts";

export function list(terminal: Terminal, json: boolean): number {
  const { fixed, filed } = tokensOf(terminal);
  const rows = [
    ...fixed.map(({ name, sha256 }) => ({ name, id: tokenId(sha256), source: "API_TOKENS" })),
    ...filed.map(({ name, sha256 }) => ({ name, id: tokenId(sha256), source: "API_TOKENS_FILE" })),
  ];
  if (json) for (const row of rows) terminal.out(`${JSON.stringify(row)}\n`);
  else if (rows.length === 0) terminal.out("no token is configured\n");
  else {
    terminal.out(
      table(
        ["name", "id", "in"],
        rows.map(({ name, id, source }) => [name, id, source]),
      ),
    );
  }
  return EXIT.ok;
}
