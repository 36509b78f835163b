import { Command, group, JSON_OPTION, Option, parseLimit, type MakeCommand } from "./shared/command.ts";
import { answer, printable, table } from "./shared/terminal-answers-and-exit-codes.ts";
import { reconcile } from "./outreach/reconcile.ts";
import { formatUntil, watch } from "./outreach/watch.ts";
import { basis, recipientSource } from "../../events/outreach.ts";
import type { DryRunAnswer } from "../outreach/dry-run/record-dry-run-recipients.ts";
import type { Expected } from "../outreach/judge-recipients.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { formatRecipient, plain } from "../history/sentences/sentence-parts.ts";
import { askService, TOKEN_HELP, URL_OPTION } from "./shared/ask-service.ts";
import { showOnOneLine } from "../template/show-invisible-characters.ts";

const run: MakeCommand = (terminal) =>
  new Command("run")
    .summary("start a run, or rehearse one")
    .description(
      `Asks the running service to start a run, as POST /social/run does; outreach watch
follows it. A dry run sends nothing, and lists the recipients a run would write to.

${TOKEN_HELP}`,
    )
    .option("--dry-run", "show what a run would do, and send nothing")
    .option("--campaign <name>", "run this campaign instead of default")
    .option("--limit <n>", "messages to send, within the day's quota", parseLimit)
    .option("--variant <letter>", "only recipients who get this variant")
    .addOption(
      new Option("--basis <basis>", "only recipients with this basis").choices(basis.anyOf.map((one) => one.const)),
    )
    .addOption(
      new Option("--source <source>", "only recipients of this source, one of RECIPIENT_SOURCES").choices(
        recipientSource.anyOf.map((one) => one.const),
      ),
    )
    .option("--recipient <name>", "an id or handle to write to; repeat it for more", collectNames)
    .option(...URL_OPTION)
    .option(...JSON_OPTION)
    .examples(
      "reachlog outreach run --dry-run --limit 20 --basis dm_first",
      "reachlog outreach run --recipient @sara_sells",
    )
    .action(async ({ dryRun, recipient: recipients, url, json, ...selection }) => {
      const dry_run = dryRun === true;
      const asked = { dry_run, ...selection, ...omitUndefined({ recipients }) };
      const begun = (await askService(terminal, url, "/social/run", asked)) as DryRunAnswer & RunAnswer;
      answer(terminal, json, begun, dry_run ? rehearsalText(begun) : startText(begun));
    });

function collectNames(name: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, name];
}

/** The members that this command shows of the service's answer to `POST /social/run`. */
interface RunAnswer {
  readonly run_id: string;
  readonly joined?: boolean;
  readonly recipients?: readonly Expected[];
}

function startText({ run_id, joined = false, recipients = [] }: RunAnswer): string {
  const named = recipients.map(({ recipient, reason, detail }) => {
    const why = detail === undefined ? plain(reason ?? "") : `${plain(reason ?? "")}: ${printable(detail)}`;
    return [formatRecipient(recipient), reason === undefined ? "comes next" : "gets no message", why];
  });
  const text = `${joined ? "the recipients joined run" : "run"} ${printable(run_id)}${joined ? "" : " has started"}\n`;
  return named.length === 0 ? text : `${table(["recipient", "expected", "reason"], named)}\n${text}`;
}

function rehearsalText({ reason, until, estimate, would_send, would_skip, notes = [] }: DryRunAnswer): string {
  const sends = would_send.map(({ recipient, variant, text }) => [
    formatRecipient(recipient),
    variant,
    showOnOneLine(text),
  ]);
  const skips = would_skip.map(({ recipient, reason: why, detail }) => [
    formatRecipient(recipient),
    detail === undefined ? plain(why) : `${plain(why)}: ${printable(detail)}`,
  ]);
  const cost = `it would cost at most ${estimate.usd.toFixed(2)} USD`;
  return (
    (sends.length === 0 ? "" : `${table(["would be sent to", "variant", "text"], sends)}\n`) +
    (skips.length === 0 ? "" : `${table(["would be skipped", "reason"], skips)}\n`) +
    `${sends.length} to send, ${skips.length} to skip, ended: ${plain(reason)}${formatUntil(until)}; ${cost}\n` +
    notes.map((note) => `${printable(note)}\n`).join("")
  );
}

export const outreach = group(
  "outreach",
  "preview, start, watch or stop a run, settle messages in doubt",
  [run, watch, reconcile],
  "All of them work beside a running service, which makes the runs.",
);
