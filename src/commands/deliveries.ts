import { CHANNELS, type ChannelName } from "../../events/channel.ts";
import { channelsOf, pendingOf } from "../../projections/deliveries.ts";
import { findDeadLetters, type DeadLetter } from "../delivery/dead-letters.ts";
import { STREAMS, type Fact, type Journal } from "../journal.ts";
import { configOf, EXIT, parse, UsageError, type Command } from "./command.ts";
import { COMMAND_CAUSE, openExistingLog, openSession } from "./log-session.ts";
import { printable, table } from "./table.ts";

export const deliveries: Command = {
  summary: "list pending dispatches and dead letters, take dead letters up again",
  help: `reachlog deliveries list [--channel NAME] [--json]
reachlog deliveries retry (--all | EVENT_ID ...) [--channel NAME]

list    what is pending on each channel, and every dead letter
retry   owes those dead letters again; a running service sends them at once,
        else the next start does

  --channel NAME   only this one of ${CHANNELS.join(", ")}
`,
  async run(args, terminal) {
    const { values, positionals } = parse(args, {
      channel: { type: "string" },
      all: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    });
    const [action, ...ids] = positionals;
    const wanted = channelsOfOption(values.channel);
    if (action !== "list" && action !== "retry") throw new UsageError("deliveries wants list or retry");
    if (action === "retry" && !values.all && ids.length === 0) throw new UsageError("retry wants --all or event ids");

    await using stack = new AsyncDisposableStack();
    const { journal, projector } = await openSession(stack, await openExistingLog(configOf(terminal)));
    const letters = (await findDeadLetters(journal.store)).filter(({ channel }) => wanted.includes(channel));
    if (action === "retry") {
      const chosen = values.all ? letters : letters.filter(({ event_id }) => ids.includes(event_id));
      await Promise.all(chosen.map((letter) => takeUp(journal, letter)));
      terminal.out(`${chosen.length} taken up again\n`);
      return chosen.length === 0 && !values.all ? EXIT.fault : EXIT.ok;
    }
    const channels = channelsOf(projector.state("deliveries"))
      .filter(([channel]) => wanted.includes(channel))
      .map(([channel, state]) => ({
        channel,
        pending: pendingOf(state),
        dispatched: state.dispatched,
        skipped: state.skipped,
        in_doubt: state.in_doubt,
        dead: state.dead,
      }));
    if (values.json) {
      terminal.out(`${JSON.stringify({ channels, dead_letters: letters })}\n`);
      return EXIT.ok;
    }
    const head = ["channel", "pending", "delivered", "skipped", "in doubt", "dead"];
    terminal.out(
      table(
        head,
        channels.map((row) => Object.values(row)),
      ),
    );
    if (letters.length > 0)
      terminal.out(`\n${table(["event", "channel", "tries", "given up", "why"], letters.map(row))}`);
    return EXIT.ok;
  },
};

function channelsOfOption(name: string | undefined): readonly ChannelName[] {
  const wanted = CHANNELS.filter((channel) => name === undefined || channel === name);
  if (wanted.length === 0) throw new UsageError(`there is no channel "${printable(name ?? "")}"`);
  return wanted;
}

/** Owes a dead letter again; once, however often it is asked for at the same moment. */
async function takeUp(journal: Journal, { event_id, source, channel, position }: DeadLetter): Promise<void> {
  const fact: Fact = { type: "ChannelDispatchRetryRequested", data: { event_id, source, channel } };
  await journal.append(STREAMS.requests, [fact], COMMAND_CAUSE, { key: `retry/${channel}/${position}` });
}

function row({ event_id, channel, attempts, abandoned_at, detail }: DeadLetter): (string | number)[] {
  return [event_id, channel, attempts, abandoned_at, detail];
}
