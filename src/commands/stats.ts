import { configOf, EXIT, parse, type Command } from "./command.ts";
import { openExistingLog } from "./log-session.ts";
import { AS_OF_HELP, asOf, asOfJson, foldAsOf, parseMoment } from "./moment.ts";

export const stats: Command = {
  summary: "show the all-time counts, also of an earlier moment",
  help: `reachlog stats [--as-of TIME|POSITION] [--json]

Messages sent, skipped and failed, counted from the log.

${AS_OF_HELP}  --json      one JSON object
`,
  async run(args, terminal) {
    const { values } = parse(args, { "as-of": { type: "string" }, json: { type: "boolean", default: false } });
    const config = configOf(terminal);
    const moment = parseMoment(values["as-of"], config.outreach.timezone);
    await using store = await openExistingLog(config);
    const folded = await foldAsOf(terminal, store, ["stats"], moment);
    const { sent, skipped, failed } = folded.states.stats;
    if (values.json) terminal.out(`${JSON.stringify({ sent, skipped, failed, as_of: asOfJson(folded) })}\n`);
    else terminal.out(`sent ${sent}, skipped ${skipped}, failed ${failed} (${asOf(folded)})\n`);
    return EXIT.ok;
  },
};
