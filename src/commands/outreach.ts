import { UsageError, type Command } from "./command.ts";
import type { OutreachAction } from "./outreach/action.ts";
import { preview } from "./outreach/preview.ts";
import { reconcile } from "./outreach/reconcile.ts";
import { watch } from "./outreach/watch.ts";

const ACTIONS: Readonly<Record<string, OutreachAction>> = { preview, watch, reconcile };

export const outreach: Command = {
  summary: "preview a run, watch the one in progress, settle what is in doubt",
  help: `${Object.values(ACTIONS)
    .map(({ usage }) => `reachlog outreach ${usage}\n`)
    .join("")}
${Object.values(ACTIONS)
  .map(({ help }) => help)
  .join("")}
All of them work beside a running service. Runs are started by POST /social/run.
`,
  async run([name = "", ...args], terminal) {
    const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
    if (action === undefined) throw new UsageError(`outreach wants one of ${Object.keys(ACTIONS).join(", ")}`);
    return action.run(args, terminal);
  },
};
