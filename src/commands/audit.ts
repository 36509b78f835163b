import { exportLog } from "./audit/export.ts";
import { head } from "./audit/head.ts";
import { importLog } from "./audit/import.ts";
import { show } from "./audit/show.ts";
import { tail } from "./audit/tail.ts";
import { verify } from "./audit/verify.ts";
import { group } from "./command.ts";

export const audit = group(
  "audit",
  "verify, follow, export and question the event log",
  [verify, head, tail, show, exportLog, importLog],
  "All but import work beside a running service.",
);
