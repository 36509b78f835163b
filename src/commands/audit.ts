import type { AuditAction } from "./audit/action.ts";
import { exportAction } from "./audit/export.ts";
import { head } from "./audit/head.ts";
import { importAction } from "./audit/import.ts";
import { show } from "./audit/show.ts";
import { tail } from "./audit/tail.ts";
import { verify } from "./audit/verify.ts";
import { UsageError, type Command } from "./command.ts";

const ACTIONS: Readonly<Record<string, AuditAction>> = {
  verify,
  head,
  tail,
  show,
  export: exportAction,
  import: importAction,
};

export const audit: Command = {
  summary: `${Object.keys(ACTIONS).join(", ")}: all about the event log`,
  help: `${Object.values(ACTIONS)
    .map(({ usage }) => `reachlog audit ${usage}\n`)
    .join("")}
${Object.values(ACTIONS)
  .map(({ help }) => help)
  .join("")}
All but import work beside a running service.
`,
  async run([name = "", ...args], terminal) {
    const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
    if (action === undefined) throw new UsageError(`audit wants one of ${Object.keys(ACTIONS).join(", ")}`);
    return action.run(args, terminal);
  },
};
