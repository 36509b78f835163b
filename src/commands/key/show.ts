import { keyId } from "../../vault/key.ts";
import { isFormerKeyGiven } from "../../vault/master-key.ts";
import { logFiles } from "../../log/log-files.ts";
import { masterKeyOf, openKey } from "../../service/open.ts";
import { configOf, EXIT, type Terminal } from "../command.ts";
import { refuseNoLog } from "../log-session.ts";

export function show(terminal: Terminal, json: boolean): number {
  const config = configOf(terminal);
  refuseNoLog(config);
  const source = config.key === undefined ? logFiles(config.log.file).key : "REACHLOG_KEY";
  const key = openKey(config);
  const [id, is_former_given] = [keyId(key), isFormerKeyGiven(masterKeyOf(config), key)];
  const note = is_former_given ? "; REACHLOG_KEY still holds the former one" : "";
  terminal.out(json ? `${JSON.stringify({ id, source, is_former_given })}\n` : `the key ${id}, of ${source}${note}\n`);
  return EXIT.ok;
}
