/** @jsxImportSource preact */
import type { VNode } from "preact";
import { ENDS, readRunCounts } from "../../history/run-list-and-page.ts";
import { formatCaller } from "../../history/event-sentences.ts";
import { readRunStatus } from "../../outreach/run-and-dry-run-page-data.ts";
import { countInWords, formatUsd, grouped } from "../../platform/format-numbers-and-lists.ts";
import { Section } from "../document.tsx";
import { useView, type View } from "../page-context.ts";
import { ActionForm, ConfirmedAction, Hindered } from "./action-form.tsx";
import { campaignHref, dryRunHref } from "../hrefs.ts";
import { RunLink } from "./event-sentence.tsx";
import { Icon } from "./icon-and-badge.tsx";
import { hindranceAtX, RunForm, SAY_OUTDATED } from "./run-form.tsx";
import { Time, toIso } from "./time.tsx";
import { A } from "./links-forms-and-tabs.tsx";

type RunStatus = Awaited<ReturnType<typeof readRunStatus>>;

/**
 * Shows the run in progress and the button that stops it. Without one, the end of the last run and the form that starts
 * the next.
 */
export async function runCard(view: View<"account" | "quota" | "run" | "runs">): Promise<VNode> {
  const { current, last, dry, window } = await readRunStatus(view, view.settings);
  const { authorized, user } = view.state("account");
  const title =
    current === undefined ? "No run in progress" : current.isDry ? "Dry run in progress" : "Run in progress";
  return (
    <Section id="run" class="card" title={title}>
      {current === undefined ? <LastRun view={view} last={last} /> : <Progress view={view} run={current} />}
      {!authorized || user === null ? null : (
        <p>
          Sends as <bdi>@{user.username}</bdi>.
        </p>
      )}
      {window === undefined ? null : <Window window={window} />}
      {current === undefined ? <NextRun dry={dry} /> : <StopForm run={current} />}
      {view.state("runs").count === 0 ? null : (
        <p>
          <A href="/runs">All runs</A>
        </p>
      )}
    </Section>
  );
}

function Window({ window }: { readonly window: NonNullable<RunStatus["window"]> }): VNode {
  const { text, isOfRecipients, isOpen, changesAt } = window;
  const { timezone } = useView().settings;
  return (
    <p>
      Messages go out <bdi>{text}</bdi> in {isOfRecipients ? "the recipient's time zone, or in " : ""}
      <bdi>{timezone}</bdi>. The window is {isOpen ? "open" : "closed"} there
      <Time before=" until " at={changesAt} />.
    </p>
  );
}

interface RunProps {
  readonly view: View<"runs">;
  readonly run: NonNullable<RunStatus["current"]>;
}

function Progress({ view, run }: RunProps): VNode {
  const { runId, isDry, sent, sentMax, skipped, contacted, failed, inDoubt, selection, waiting, stopRequestedAt } = run;
  return (
    <>
      {isDry ? (
        <p>It sends nothing.</p>
      ) : (
        <>
          <p class="figure">
            {grouped(sent)} <small>sent, of at most {grouped(sentMax)}</small>
          </p>
          <progress max={Math.max(1, sentMax)} value={sent} aria-label="Sent, of the messages that the quota allows" />
        </>
      )}
      <p>
        {saySkipped(skipped, contacted)}, {grouped(failed)} failed, <InDoubt count={inDoubt} />.{" "}
        <RunLink view={view} runId={runId} />.
      </p>
      {selection === "" ? null : <p>It was started{selection}.</p>}
      {waiting === undefined ? null : (
        <p>
          It waits {waiting.why}, and continues at <Time at={waiting.until} />.
        </p>
      )}
      {stopRequestedAt === undefined ? null : (
        <>
          <p>
            It was asked to stop <Time at={stopRequestedAt} />, and ends once what is in flight is settled.
          </p>
          <LookUp back="/" label="Close it if its process died" />
        </>
      )}
    </>
  );
}

interface LookUpProps {
  readonly back: string;
  readonly label: string;
  readonly isPrimary?: boolean;
}

/** Form that looks up the messages in doubt at X, and also closes a run whose process died. */
export function LookUp({ back, label, isPrimary = false }: LookUpProps): VNode {
  const hindrance = hindranceAtX(useView(), back);
  return (
    <ActionForm back={back} action="/console/outreach/lookup">
      <button class={isPrimary ? "primary" : undefined} disabled={hindrance !== undefined}>
        <Icon name="search" />
        {label}
      </button>
      <Hindered hindrance={hindrance} />
    </ActionForm>
  );
}

function StopForm({ run: { runId, stopRequestedAt } }: Omit<RunProps, "view">): VNode | null {
  if (stopRequestedAt !== undefined) return null;
  return (
    <ConfirmedAction
      back="/"
      action="/console/run/stop"
      fields={{ run_id: runId }}
      label="Stop run"
      says="It sends nothing more, except a message already on its way, settles what is in flight, and ends. The next run continues with the rest."
    >
      <button>Stop run</button>
    </ConfirmedAction>
  );
}

/** Shows the findings of the newest dry run with the form for the next run, and for another dry run. */
function NextRun({ dry }: { readonly dry: RunStatus["dry"] }): VNode {
  return (
    <>
      {dry === undefined ? null : <Findings dry={dry} />}
      <div class="actions">
        <RunForm limits={{}} preview={dry?.sends === 0 ? undefined : dry} isFirst={dry === undefined} />
      </div>
    </>
  );
}

function Findings({ dry }: { readonly dry: NonNullable<RunStatus["dry"]> }): VNode {
  const { runId, at, caller, limits, sends, skips, contacted, outdated } = dry;
  const { campaign } = limits;
  return (
    <p>
      {caller === undefined ? "There was" : <bdi>{formatCaller(caller)} made</bdi>} a{" "}
      <A href={dryRunHref(runId)}>dry run</A>
      {campaign === undefined ? null : (
        <>
          {" "}
          of the campaign <A href={campaignHref(campaign)}>{campaign}</A>
        </>
      )}
      : {grouped(sends)} would get a message, {grouped(skips)} would be skipped
      {contacted === 0 ? "" : `, ${grouped(contacted)} were contacted earlier`}. <Time at={at} as="full" />
      {outdated === undefined ? null : `. ${SAY_OUTDATED[outdated]}.`}
    </p>
  );
}

export function saySkipped(skipped: number, contacted: number): string {
  return `${grouped(skipped)} skipped${contacted === 0 ? "" : `, ${grouped(contacted)} contacted earlier`}`;
}

function LastRun({ view, last }: { readonly view: View<"runs">; readonly last: RunStatus["last"] }): VNode {
  if (last === undefined) return <p class="empty">There was none yet.</p>;
  const { runId, time, reason, until, sent, skipped, contacted, failed, inDoubt } = last;
  return (
    <>
      <p class="figure">
        {grouped(sent)} <small>sent by the last one</small>
      </p>
      <p>
        {saySkipped(skipped, contacted)}, {grouped(failed)} failed, <InDoubt count={inDoubt} />.
      </p>
      <p>
        Ended <Time at={time} />: {ENDS[reason]}
        <Time before=" until " at={until} />. <RunLink view={view} runId={runId} />.
      </p>
    </>
  );
}

/** Shows the number of messages in doubt, with a link to where an operator decides about them. */
function InDoubt({ count }: { readonly count: number }): VNode {
  return count === 0 ? <>0 in doubt</> : <A href="/attention">{grouped(count)} in doubt</A>;
}

/** Returns the week of a moment in the quota's time zone, from Monday on, as ms since 1970. */
export function findWeek({ settings }: View, at: string) {
  const day = Temporal.Instant.from(at).toZonedDateTimeISO(settings.timezone).startOfDay();
  const monday = day.subtract({ days: day.dayOfWeek - 1 });
  return { from: monday.epochMilliseconds, to: monday.add({ days: 7 }).epochMilliseconds };
}

type WeekProps = { readonly view: View<"run" | "runs">; readonly week: ReturnType<typeof findWeek> };

/** Heads the runs of a week with its days, and with what all runs of that week did. Dry runs do not count. */
export function Week({ view, week: { from, to } }: WeekProps): VNode {
  const runs = [...view.state("runs").started].filter(([, { dry_run, started_at }]) => {
    const at = Date.parse(started_at);
    return !dry_run && at >= from && at < to;
  });
  const counts = runs.map(([runId, run]) => readRunCounts(view.state("run"), runId, run));
  const sum = (name: "sent" | "skipped" | "failed") => grouped(counts.reduce((all, one) => all + one[name], 0));
  const usd = runs.reduce((all, [, { end }]) => all + (end?.usd ?? 0), 0);
  return (
    <span class="week">
      <b>
        {from <= view.now && view.now < to ? "This week, " : ""}
        <Time at={toIso(from)} as="date" /> – <Time at={toIso(to - 1)} as="date" />
      </b>
      <small class="quiet">
        {countInWords(runs.length, "run")} · {sum("sent")} sent, {sum("skipped")} skipped, {sum("failed")} failed
        {usd === 0 ? "" : ` · ${formatUsd(usd)}`}
      </small>
    </span>
  );
}
