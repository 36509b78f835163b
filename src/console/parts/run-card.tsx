/** @jsxImportSource preact */
import type { VNode } from "preact";
import { ENDS, READ_USD } from "../../history/run-events.ts";
import { formatCaller } from "../../history/event-sentences.ts";
import { listOpenCampaigns } from "../../outreach/campaigns/read-campaigns.ts";
import { readDryRunCost, readRunRefusal, readRunStatus, type ShownDryRun } from "../../outreach/run-status.ts";
import { ALL_OF, countInWords, formatDuration, formatUsd, grouped } from "../../platform/counts-and-lists.ts";
import { BASES } from "../../recipients/list-recipients.ts";
import { Section } from "../document.tsx";
import { useView, type View } from "../page-context.ts";
import { ActionForm, ConfirmedAction, Field, Hindered, Select, type Hindrance } from "./action-form.tsx";
import { dryRunHref, runHref } from "../hrefs.ts";
import { RunLink } from "./events.tsx";
import { Icon } from "./icon.tsx";
import { Time } from "./time.tsx";
import { A } from "./link.tsx";

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
      {current === undefined ? <NextRun view={view} dry={dry} /> : <StopForm run={current} />}
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

/** Returns why nothing can be asked at X now. Undefined if it can. */
export function hindranceAtX({ settings, stateNow }: View): Hindrance | undefined {
  const { user, authorized } = stateNow("account");
  if (!settings.parts.x.isConfigured) return { why: "The X app is not configured", nextStep: SET_UP };
  if (authorized) return undefined;
  const label = user === null ? "Authorize an X account" : "Authorize again";
  const why = user === null ? "No X account is authorized" : "X no longer accepts our authorization";
  return { why, nextStep: { href: "/social/auth", label } };
}

const SET_UP = { href: "/setup", label: "What to set up" } as const;

/** Returns why neither a run nor a dry run may start now. Undefined if one may, or while a run is in progress. */
function hindranceToRun(view: View): Hindrance | undefined {
  const hasMessage = view.settings.template !== undefined || listOpenCampaigns(view.stateNow("campaigns")).length > 1;
  return hindranceAtX(view) ?? (hasMessage ? undefined : { why: "No message is configured", nextStep: SET_UP });
}

/** Returns why a run would be refused now. Undefined if it may start, or while a run is in progress. */
export function hindranceToSend(view: View): Hindrance | undefined {
  return hindranceToRun(view) ?? readRunRefusal(view, view.settings);
}

interface LookUpProps {
  readonly back: string;
  readonly label: string;
  readonly isPrimary?: boolean;
}

/** Form that has X asked about the messages in doubt, which also closes a run whose process died. */
export function LookUp({ back, label, isPrimary = false }: LookUpProps): VNode {
  const hindrance = hindranceAtX(useView());
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

/** Shows the findings of the newest dry run with the form that starts the run, and the form for another dry run. */
function NextRun({ view, dry }: { readonly view: View<"account">; readonly dry: RunStatus["dry"] }): VNode {
  return (
    <>
      {dry === undefined ? null : (
        <p>
          {dry.caller === undefined ? "There was" : <bdi>{formatCaller(dry.caller)} made</bdi>} a{" "}
          <A href={dryRunHref(dry.runId)}>dry run</A>: {grouped(dry.sends)} would get a message, {grouped(dry.skips)}{" "}
          would be skipped{dry.contacted === 0 ? "" : `, ${grouped(dry.contacted)} were contacted earlier`}.{" "}
          <Time at={dry.at} as="full" />
        </p>
      )}
      <div class="actions">
        {dry === undefined || dry.sends === 0 ? null : (
          <StartRun view={view} dry={{ sends: dry.sends, limits: dry.selection }} />
        )}
        <DryRunFields limits={{}} isFirst={dry === undefined} />
      </div>
    </>
  );
}

type Limits = NonNullable<RunStatus["dry"]>["selection"];

interface StartRunProps {
  readonly view: View<"account">;
  /** The dry run that the run repeats: its recipients and its limits. */
  readonly dry: {
    readonly sends: number;
    readonly limits: Limits;
    readonly costs?: ShownDryRun["costs"];
    readonly seconds?: number;
    readonly quota?: ShownDryRun["quota"];
    readonly variants?: ShownDryRun["variants"];
  };
}

/**
 * Button that starts the run which a dry run previewed, after a confirmation. The operator may reduce the number of
 * messages.
 */
export function StartRun({ view, dry }: StartRunProps): VNode | null {
  const { sends, limits, costs, seconds, quota, variants = [] } = dry;
  const { limit, ...others } = limits;
  const most = Math.min(sends, limit ?? sends);
  const parts = variants.map(({ variant, count }) => `${grouped(count)} of variant ${variant}`);
  const hindrance = hindranceToSend(view);
  const start = (
    <ConfirmedAction
      back="/"
      action="/console/run/start"
      isDisabled={hindrance !== undefined || view.stateNow("run").current !== null}
      fields={toFields(others)}
      label="Start run…"
      question={`Start the run for ${countInWords(sends, "person", "people")}?`}
      says={
        <ul class="effects">
          <li>
            Each gets one message as <bdi>@{view.state("account").user?.username}</bdi>
            {parts.length < 2 ? "" : `: ${ALL_OF.format(parts)}`}. A sent message cannot be taken back.
          </li>
          {costs === undefined || seconds === undefined ? null : (
            <li>
              It costs at most {formatUsd(costs.usd)}, plus at most {formatUsd(READ_USD.message)} for each new reply. It
              takes about {formatDuration(seconds)}, and you can stop it between two messages.
            </li>
          )}
          {quota === undefined ? null : (
            <li>
              {grouped(quota.after)} of today's {grouped(quota.limit)} messages are used after it.
            </li>
          )}
        </ul>
      }
    >
      <Field label="Messages, at most" type="number" name="limit" min={1} max={view.settings.dailyLimit} value={most} />
      <button class="primary">
        <Icon name="play" />
        Start run
      </button>
    </ConfirmedAction>
  );
  // The form of the dry run beside it says what hinders both.
  if (hindranceToRun(view) !== undefined || view.formToken === undefined) return start;
  return (
    <>
      {start}
      <Hindered hindrance={hindrance} />
    </>
  );
}

/** Converts the limits of a run to form fields. */
export function toFields(limits: Limits): Record<string, string> {
  const given = Object.entries(limits).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
}

interface DryRunFieldsProps {
  /** Page to come back to if the dry run is refused. Default: the overview. */
  readonly back?: string;
  readonly limits: Limits;
  /** True if there was no dry run yet, so that this is the page's main button. */
  readonly isFirst?: boolean;
}

/**
 * Form that makes a dry run, with what that costs at most. Its fields select recipients; left empty, the dry run is for
 * all of them.
 */
export function DryRunFields({ limits, back = "/", isFirst = false }: DryRunFieldsProps): VNode | null {
  const view = useView();
  if (view.formToken === undefined) return null;
  const { template, sources, dailyLimit } = view.settings;
  const labels = template?.variants.map(({ label }) => label) ?? [];
  const { limit, variant, basis, source } = limits;
  const open = listOpenCampaigns(view.stateNow("campaigns"));
  const { people, usd, isOpenEnded } = readDryRunCost(view, view.settings);
  const { current } = view.stateNow("run");
  const running = current ? { href: runHref(current.run_id), label: "The run" } : undefined;
  const hindrance = hindranceToRun(view) ?? (running && { why: "A run is in progress", nextStep: running });
  return (
    <ActionForm back={back} action="/console/run/dry">
      <button class={isFirst ? "primary" : undefined} disabled={hindrance !== undefined}>
        <Icon name="eye" />
        Dry run
      </button>
      {hindrance === undefined ? (
        <>
          <small class="quiet">
            It sends nothing. X charges at most {formatUsd(usd)} for {countInWords(people, "look-up")}, and at most{" "}
            {formatUsd(READ_USD.message)} for each message that it reads
            {isOpenEnded ? " and each person that it finds at X" : ""}.
          </small>
          <details>
            <summary>Only for some…</summary>
            <div class="filter">
              <Field label="Messages, at most" type="number" name="limit" min={1} max={dailyLimit} value={limit} />
              {labels.length < 2 ? null : <Select name="variant" label="Variant" values={labels} chosen={variant} />}
              {open.length < 2 ? null : (
                <Select
                  name="campaign"
                  label="Campaign"
                  values={open}
                  chosen={limits.campaign}
                  inWords={String}
                  none={null}
                />
              )}
              <Select name="basis" label="Basis" values={BASES} chosen={basis} />
              {sources.length < 2 ? null : <Select name="source" label="Source" values={sources} chosen={source} />}
            </div>
          </details>
        </>
      ) : (
        <Hindered hindrance={hindrance} />
      )}
    </ActionForm>
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
