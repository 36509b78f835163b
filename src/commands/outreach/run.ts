import type { Recipient, RunEnd, SkipReason, Usage } from "../../../events/outreach.ts";
import { nameOf, plain } from "../../history/words/phrases.ts";
import { askService, TOKEN_HELP, URL_OPTION } from "../ask-service.ts";
import { Command, EXIT, JSON_OPTION, type MakeCommand } from "../command.ts";
import { printable, table } from "../table.ts";

/** What `POST /social/run` answers to a dry run. */
interface Rehearsed {
  readonly reason: RunEnd;
  readonly estimate: Usage;
  readonly would_send: readonly { readonly recipient: Recipient; readonly text: string; readonly variant: string }[];
  readonly would_skip: readonly { readonly recipient: Recipient; readonly reason: SkipReason }[];
}

export const run: MakeCommand = (terminal, exit) =>
  new Command("run")
    .summary("start a run, or rehearse one")
    .description(
      `Asks the running service to start a run, as POST /social/run does; outreach watch
follows it. A dry run sends nothing, and says whom a run would write to.

${TOKEN_HELP}`,
    )
    .option("--dry-run", "say what a run would do, and send nothing")
    .option(...URL_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", "\nExample:\n  reachlog outreach run --dry-run")
    .action(
      exit(async ({ dryRun, url, json }) => {
        const answer = await askService(terminal, url, "/social/run", { dry_run: dryRun === true });
        if (json === true) terminal.out(`${JSON.stringify(answer)}\n`);
        else if (dryRun === true) terminal.out(rehearsalText(answer as Rehearsed));
        else terminal.out(`run ${printable((answer as { run_id: string }).run_id)} has started\n`);
        return EXIT.ok;
      }),
    );

function rehearsalText({ reason, estimate, would_send, would_skip }: Rehearsed): string {
  const sends = would_send.map(({ recipient, variant, text }) => [nameOf(recipient), variant, text]);
  const skips = would_skip.map(({ recipient, reason: why }) => [nameOf(recipient), plain(why)]);
  const cost = `it would cost at most ${estimate.usd.toFixed(2)} USD`;
  return (
    (sends.length === 0 ? "" : `${table(["would be sent to", "variant", "text"], sends)}\n`) +
    (skips.length === 0 ? "" : `${table(["would be skipped", "reason"], skips)}\n`) +
    `${sends.length} to send, ${skips.length} to skip, ended: ${plain(reason)}; ${cost}\n`
  );
}
