import { CHANNELS } from "../../events/channel.ts";
import { UsageError, type Command } from "./command.ts";
import type { DeliveriesAction } from "./deliveries/action.ts";
import { discard } from "./deliveries/discard.ts";
import { lag } from "./deliveries/lag.ts";
import { list } from "./deliveries/list.ts";
import { resume } from "./deliveries/resume.ts";
import { retry } from "./deliveries/retry.ts";
import { show } from "./deliveries/show.ts";

const ACTIONS: Readonly<Record<string, DeliveriesAction>> = { list, show, lag, retry, discard, resume };

export const deliveries: Command = {
  summary: "list what is pending, dead letters and suspended channels, and decide of them",
  help: `${Object.values(ACTIONS)
    .map(({ usage }) => `reachlog deliveries ${usage}\n`)
    .join("")}
${Object.values(ACTIONS)
  .map(({ help }) => help)
  .join("")}
  --channel NAME   only this one of ${CHANNELS.join(", ")}

All of them work beside a running service.
`,
  async run([name = "", ...args], terminal) {
    const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
    if (action === undefined) throw new UsageError(`deliveries wants one of ${Object.keys(ACTIONS).join(", ")}`);
    return action.run(args, terminal);
  },
};
