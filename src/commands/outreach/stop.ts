import { requestStop } from "../../outreach/stop-run.ts";
import { sleep } from "../../platform/clock.ts";
import { Command, configOf, EXIT, JSON_OPTION, type MakeCommand } from "../command.ts";
import { COMMAND_METADATA, openSession } from "../log-session.ts";
import { printable } from "../table.ts";

export const stop: MakeCommand = (terminal, exit) =>
  new Command("stop")
    .summary("stop the run in progress")
    .description(
      `Asks the run in progress to stop, on whatever instance it is made: it sends
nothing more, settles what is in flight and ends as stopped. A message that is
just being sent may still go out. Exit code 1 when no run is in progress.`,
    )
    .option("--run <id>", "only if it is this one")
    .option(...JSON_OPTION)
    .addHelpText("after", "\nExample:\n  reachlog outreach stop")
    .action(
      exit(async ({ run, json }) => {
        await using session = await openSession(configOf(terminal));
        const asked = await requestStop({ ...session, sleep, random: Math.random }, run, COMMAND_METADATA);
        if (asked.kind === "not_in_progress") {
          terminal.err(run === undefined ? "no run is in progress\n" : `run ${printable(run)} is not in progress\n`);
          return EXIT.fault;
        }
        terminal.out(
          json === true
            ? `${JSON.stringify({ run_id: asked.run_id })}\n`
            : `run ${printable(asked.run_id)} is asked to stop; outreach watch shows its end\n`,
        );
        return EXIT.ok;
      }),
    );
