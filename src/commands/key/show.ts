import { keyId } from "../../account/key.ts";
import { logFiles } from "../../log-files.ts";
import { openKey } from "../../parts.ts";
import { configOf, EXIT, type Terminal } from "../command.ts";
import { refuseNoLog } from "../log-session.ts";

export function show(terminal: Terminal, json: boolean): number {
  const config = configOf(terminal);
  refuseNoLog(config);
  const source = config.key === undefined ? logFiles(config.log.file).key : "REACHLOG_KEY";
  const id = keyId(openKey(config));
  terminal.out(json ? `${JSON.stringify({ id, source })}\n` : `the key ${id}, of ${source}\n`);
  return EXIT.ok;
}
