import { configOf, EXIT, parse, UsageError, type Command } from "./command.ts";
import { openExistingLog } from "./log-session.ts";
import { AS_OF_HELP, asOf, asOfJson, foldAsOf, parseMoment } from "./moment.ts";
import { printable } from "./table.ts";
import { variantsAsJson, variantsAsText } from "./variant-results.ts";

export const stats: Command = {
  summary: "show the all-time counts, also by variant and of an earlier moment",
  help: `reachlog stats [--by variant] [--as-of TIME|POSITION] [--json]

Messages sent, skipped and failed, counted from the log.

  --by variant  what came of each variant of each template. replied and opted out
              count people, as far as the messages to us were read, which every
              run begins with. A template is told by its id, which
              reachlog outreach preview shows for the one configured now
${AS_OF_HELP}  --json      one JSON object
`,
  async run(args, terminal) {
    const { values } = parse(args, {
      by: { type: "string" },
      "as-of": { type: "string" },
      json: { type: "boolean", default: false },
    });
    const { by, json } = values;
    if (by !== undefined && by !== "variant") {
      throw new UsageError(`--by wants variant, not "${printable(by.slice(0, 40))}"`);
    }
    const config = configOf(terminal);
    const moment = parseMoment(values["as-of"], config.outreach.timezone);
    await using store = await openExistingLog(config);
    if (by === "variant") {
      const folded = await foldAsOf(terminal, store, ["variants"], moment);
      const { groups } = folded.states.variants;
      terminal.out(json ? variantsAsJson(groups, folded) : variantsAsText(groups, folded));
      return EXIT.ok;
    }
    const folded = await foldAsOf(terminal, store, ["stats"], moment);
    const { sent, skipped, failed } = folded.states.stats;
    if (json) terminal.out(`${JSON.stringify({ sent, skipped, failed, as_of: asOfJson(folded) })}\n`);
    else terminal.out(`sent ${sent}, skipped ${skipped}, failed ${failed} (${asOf(folded)})\n`);
    return EXIT.ok;
  },
};
