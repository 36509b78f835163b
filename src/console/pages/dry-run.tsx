/** @jsxImportSource preact */
import type { VNode } from "preact";
import { ENDS, READ_USD } from "../../history/run-list-and-page.ts";
import { formatCaller, shorten } from "../../history/event-sentences.ts";
import { checkRun, readDryRun, type ShownDryRun } from "../../outreach/run-and-dry-run-page-data.ts";
import { countInWords, formatDuration, formatUsd, grouped } from "../../platform/format-numbers-and-lists.ts";
import { ConsoleDocument, Head, Section } from "../document.tsx";
import { campaignHref, dryRunHref } from "../hrefs.ts";
import { consolePage, readNumber, type Made, type View } from "../page-context.ts";
import { toSpaces } from "../parts/action-form.tsx";
import { RecipientLink } from "../parts/event-sentence.tsx";
import { Badge, Icon } from "../parts/icon-and-badge.tsx";
import { A } from "../parts/links-forms-and-tabs.tsx";
import { RunForm, SAY_OUTDATED } from "../parts/run-form.tsx";
import { breakable, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { formatContactName } from "./people.tsx";

/** Maximum number of characters of a message in the table, because a message may have 10,000. */
const CHARACTERS_SHOWN = 500;

/**
 * Page that shows one recorded dry run: the recipients that a real run would write to or skip, and what it would cost.
 */
export const dryRunPage = consolePage({
  reads: ["account", "campaigns", "contacts", "quota", "runs"],
  render: renderDryRun,
});

type DryRunView = View<"account" | "campaigns" | "contacts" | "quota" | "runs">;

async function renderDryRun(view: DryRunView): Promise<Made> {
  const runId = (view.parameters["run_id"] ?? "").toLowerCase();
  const run = await readDryRun(view, view.settings, { runId, from: readNumber(view, "from") });
  if (run === undefined) return undefined;
  const { at, caller, template } = run;
  return (
    <ConsoleDocument title="Dry run" path="/runs" view={view}>
      <Head
        above={<A href="/runs">Runs</A>}
        title={
          <>
            Dry run <Badge state={["neutral", "eye", "nothing was sent"]} />
          </>
        }
        says={
          <>
            {template && <bdi>{template} · </bdi>}
            <Time at={at} as="full" />
            {caller && <bdi>, by {formatCaller(caller)}</bdi>}
          </>
        }
      />
      <div class="card dry">
        <Totals runId={runId} run={run} />
        <Costs run={run} />
      </div>
      <Age run={run} />
      <div class="columns">
        <Skips run={run} />
        <Section id="checks" title="Checks" class="card">
          <ul class="checks">
            {checkRun(view, view.settings, run).map(({ isGood, text }) => (
              <li class={isGood ? undefined : "doubtful"}>
                <Icon name={isGood ? "check" : "triangleAlert"} />
                <span>{text}</span>
              </li>
            ))}
          </ul>
        </Section>
      </div>
      <Messages runId={runId} run={run} />
    </ConsoleDocument>
  );
}

interface RunProps {
  readonly run: ShownDryRun;
}

/**
 * Words for recipients that the dry run did not judge, because the log already holds the reason why they get no
 * message.
 */
const PASSED: Readonly<Record<string, (count: number) => string>> = {
  failed_before: (count) => `The message to ${countInWords(count, "more person", "more people")} failed earlier`,
  held: (count) => `${countInWords(count, "reply waits", "replies wait")} for your decision`,
  left_out: (count) => `${countInWords(count, "person is", "people are")} left out by the choice of recipients`,
  not_in_audience: (count) => `${countInWords(count, "person is", "people are")} not in the audience`,
};

function Totals({ runId, run }: RunProps & { readonly runId: string }): VNode {
  const { sends, skipped, handled, passed, selection, reason, until } = run;
  const others = passed.reduce((sum, { count }) => sum + count, 0);
  const all = Math.max(1, handled + sends + skipped + others);
  const parts = [
    { look: "other", name: "Contacted earlier", count: handled },
    ...(others === 0 ? [] : [{ look: "other", name: "Others", count: others }]),
    { look: "sent", name: "Now", count: sends },
    { look: "skipped", name: "Skipped", count: skipped },
  ];
  let from = 0;
  return (
    <div>
      <p>
        <b class="huge">{grouped(sends)}</b> {sends === 1 ? "person" : "people"} would get a message
      </p>
      <p class="quiet">
        {grouped(skipped)} would be skipped.{" "}
        {handled === 0 ? "" : `${countInWords(handled, "person was", "people were")} contacted earlier. `}
        {passed.map(({ reason: why, count }) => `${PASSED[why]?.(count) ?? `${grouped(count)}: ${toSpaces(why)}`}. `)}
        {selection === "" ? "" : `For a run${selection}. `}
        The run ends when {ENDS[reason]}
        <Time before=" until " at={until} />.
        <Reach run={run} judged={handled + sends + skipped + others} />
      </p>
      <svg class="share" aria-hidden="true">
        {parts.map(({ look, count }) => {
          const x = (from / all) * 100;
          from += count;
          return <rect class={look} x={`${x}%`} width={`${(count / all) * 100}%`} height="12" />;
        })}
      </svg>
      <ul class="legend">
        {parts.map(({ look, name, count }) => (
          <li class={look}>
            {name} <b>{grouped(count)}</b>
          </li>
        ))}
      </ul>
      <div class="actions">
        <NextRun runId={runId} run={run} />
      </div>
    </div>
  );
}

/**
 * Form for the run that the dry run has simulated, with the same limits. If the dry run is outdated, the form only
 * makes a new one.
 */
function NextRun({ runId, run }: RunProps & { readonly runId: string }): VNode {
  const { sends, limits, outdated, isOpen } = run;
  if (outdated !== undefined) return <RunForm limits={limits} label="Make a new dry run" isFirst />;
  return <RunForm limits={limits} back={dryRunHref(runId)} preview={sends === 0 || !isOpen ? undefined : run} />;
}

/**
 * Says after how many people the dry run ended, if it did not judge all, and links to the campaign, which counts all.
 * Renders nothing if it judged all.
 */
function Reach({ run, judged }: RunProps & { readonly judged: number }): VNode | null {
  const { campaign, reason, known } = run;
  if (reason === "completed" || judged >= known) return null;
  return (
    <>
      {" "}
      The dry run ended after {grouped(judged)} of {countInWords(known, "known person", "known people")}; the campaign{" "}
      <A href={campaignHref(campaign)}>
        <bdi>{campaign}</bdi>
      </A>{" "}
      has the count of all.
    </>
  );
}

function Costs({ run }: RunProps): VNode {
  const { at, costs, paid, sends, seconds, quota, resetsAt, outdated } = run;
  return (
    <ul class="costs">
      {costs === undefined ? null : (
        <li>
          <Icon name="circleDollarSign" />
          <b>
            {outdated === undefined ? "A run now costs" : "A run then would have cost"} at most {formatUsd(costs.usd)},
            plus new replies
          </b>
          <span>
            {costs.parts.join(", ")}. Each further message or profile that it reads adds at most{" "}
            {formatUsd(READ_USD.message)}. X charges most repeated reads once a UTC day, so it may cost less.
            {paid === undefined ? "" : ` This dry run cost at most ${formatUsd(paid)}.`}
          </span>
        </li>
      )}
      <li>
        <Icon name="timer" />
        <b>
          {outdated === undefined ? "It takes" : "It would have taken"} about {formatDuration(seconds)}
        </b>
        <span>{sends === 0 ? "It sends nothing." : "The messages go out one by one, as X allows."}</span>
      </li>
      <li>
        <Icon name="slidersHorizontal" />
        <b>
          {outdated === undefined
            ? `${grouped(quota.after)} of ${grouped(quota.limit)} messages used after it`
            : `It would have used ${countInWords(sends, "message")}`}
        </b>
        <span>
          {outdated === "other_day" ? (
            <>
              Quota of <Time at={at} as="date" />.
            </>
          ) : (
            <>
              {grouped(quota.used)} went out today. The quota starts again <Time at={resetsAt} />.
            </>
          )}
        </span>
      </li>
    </ul>
  );
}

/** Says when the dry run was made, that this page only shows what was recorded, and what has changed since. */
function Age({ run: { at, isTemplateChanged, ranSince, outdated } }: RunProps): VNode {
  const changes = [
    outdated !== undefined && `${SAY_OUTDATED[outdated]}, so its figures hold no longer.`,
    isTemplateChanged && "The message has changed since, so its texts are not shown.",
    ranSince != null && `Run ${grouped(ranSince)} has started since.`,
  ].filter((change) => change !== false);
  return (
    <p class="aside">
      <Icon name="clock" />
      <span>
        Made <Time at={at} as="age" /> and recorded: this page costs nothing to reload.{" "}
        {changes.length === 0 ? "No run has started since." : changes.join(" ")}
      </span>
    </p>
  );
}

type SkipReason = ShownDryRun["skips"][number]["reason"];

/** Words for why a recipient is skipped, and what the operator can do about it. */
const SKIPS: Readonly<Record<SkipReason, readonly [title: string, advice: string]>> = {
  no_consent: ["No consent on record", "Import when and where they agreed, and the next run includes them."],
  cannot_receive_dm: [
    "Cannot receive messages from us",
    "Their account accepts messages only from people they follow.",
  ],
  protected: ["A protected account", "Only followers they approved can message them."],
  suppressed: ["Suppressed", "They opted out, or an operator suppressed them. No run will message them."],
  self: ["Our own account", "It sends the messages."],
  invalid_recipient: ["Unknown to X", "Correct the handle or the id in the list, and import it again."],
  missing_field: ["A field of the message is missing", "Import the field, or give its placeholder a fallback."],
  already_contacted: ["Contacted earlier", "Each person gets one message."],
  too_soon: ["Contacted a short time ago", "A later run includes them, once CONTACT_GAP_DAYS have passed."],
  not_in_audience: ["Not in the audience", "Change the campaign's audience to include them."],
};

function Skips({ run: { skips, skipped } }: RunProps): VNode {
  return (
    <Section id="skips" title={`Skipped, by reason (${grouped(skipped)})`} class="card">
      {skips.length === 0 ? <p class="empty">Each recipient would get a message.</p> : null}
      {skips.map(({ reason, count, recipients }, at) => {
        const [title, advice] = SKIPS[reason];
        return (
          <details class="reason" open={at === 0}>
            <summary>
              <b>{grouped(count)}</b>
              <span>
                <b>{title}</b>
                <small class="quiet">{advice}</small>
              </span>
            </summary>
            <ul class="handles">
              {recipients.map(({ recipient, detail }) => (
                <li title={detail}>
                  <RecipientLink recipient={recipient} name={formatContactName(recipient)} />
                </li>
              ))}
            </ul>
            {recipients.length === count ? null : (
              <p class="quiet">
                The first {grouped(recipients.length)} of {grouped(count)}.
              </p>
            )}
            {reason === "no_consent" || reason === "missing_field" || reason === "invalid_recipient" ? (
              <A class="button" href="/people/import">
                <Icon name="upload" />
                Import…
              </A>
            ) : null}
          </details>
        );
      })}
    </Section>
  );
}

function Messages({ runId, run }: RunProps & { readonly runId: string }): VNode | null {
  const { variants, rows, next, sends } = run;
  if (sends === 0) return null;
  return (
    <Section id="messages" title="Messages">
      <div class="previews card">
        {variants.map(({ variant, count, sample }) => (
          <div>
            <h3>
              Variant {variant} <small class="quiet">{countInWords(count, "person", "people")}</small>
            </h3>
            <p class="bubble message">
              <bdi>{sample?.text ?? "The text can no longer be shown."}</bdi>
            </p>
          </div>
        ))}
      </div>
      {rows.length === 0 ? null : (
        <Table
          label="Table of messages"
          columns={["recipient", "variant", ...breakable("text")]}
          rows={rows.map(({ recipient, variant, text }) => [
            <RecipientLink recipient={recipient} name={formatContactName(recipient)} />,
            variant,
            text && (
              <bdi class="message">{shorten(text, CHARACTERS_SHOWN, ` (${grouped(text.length)} characters)`)}</bdi>
            ),
          ])}
          isTall
        />
      )}
      {next === undefined ? null : (
        <p>
          {grouped(rows.length)} of {grouped(sends)}. <A href={`${dryRunHref(runId)}?from=${next}`}>More messages</A>
        </p>
      )}
    </Section>
  );
}
