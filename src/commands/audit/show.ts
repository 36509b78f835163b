import { configOf, EXIT, parse, UsageError, type Terminal } from "../command.ts";
import { openExistingLog } from "../log-session.ts";
import { asOf, parseMoment, placeOf } from "../moment.ts";
import { startProgress } from "../progress.ts";
import { printable } from "../table.ts";
import type { AuditAction } from "./action.ts";
import { eventsAt, type History, type Reading } from "./show/history.ts";
import { asJson, sentenceOf } from "./show/lines.ts";
import { subjectOf } from "./show/subject.ts";

export const show: AuditAction = {
  usage: "show RECIPIENT|DOMAIN/SHORT_CODE|ID [--as-of TIME|POSITION] [--all] [--json]",
  help: `show     tells in words all that happened to one person or link, or what belongs to
         the event or run with an id: the same request, message or dispatch. Of many
         events the first and the last are told, with --all all of them; --json writes
         each as a JSON object. --as-of is explained in reachlog stats --help. For a
         person no click is read; for a link, its channels' outcomes since its first.
`,
  async run(args, terminal) {
    const { values, positionals } = parse(
      args,
      {
        "as-of": { type: "string" },
        all: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
      },
      1,
    );
    const [wanted] = positionals;
    if (wanted === undefined) throw new UsageError("show wants a recipient, a link, or the id of an event or a run");
    const config = configOf(terminal);
    const moment = parseMoment(values["as-of"], config.outreach.timezone);
    const subject = subjectOf(wanted);
    await using store = await openExistingLog(config);
    const place = await placeOf(store, moment);
    const progress = startProgress(terminal, "reading", place.position);
    const reading = { store, to: place.position, onProgress: progress.update };
    const history = await subject.historyIn(reading);
    progress.end();
    if (history === undefined) {
      terminal.err(`the log knows no ${subject.kind} ${printable(wanted)} (${asOf(place)})\n`);
      return EXIT.fault;
    }
    if (values.json) {
      for await (const event of eventsAt(reading, history.positions)) terminal.out(asJson(event));
      return EXIT.ok;
    }
    await tell(terminal, reading, history, values.all);
    terminal.out(`\n${history.summary}(${asOf(place)})\n`);
    return EXIT.ok;
  },
};

/** Events told of each end of a long history: both together fill a screen. */
const TOLD_EVENTS = 20;

async function tell({ out }: Terminal, reading: Reading, { positions }: History, all: boolean): Promise<void> {
  const between = positions.length - 2 * TOLD_EVENTS;
  const isCut = between > 0 && !all;
  const first = isCut ? positions.slice(0, TOLD_EVENTS) : positions;
  for await (const event of eventsAt(reading, first)) out(sentenceOf(event));
  if (!isCut) return;
  out(`… ${between} more, which --all tells …\n`);
  for await (const event of eventsAt(reading, positions.slice(-TOLD_EVENTS))) out(sentenceOf(event));
}
