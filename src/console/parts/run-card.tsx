/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import type { Recorded } from "../../../events/catalog.ts";
import type { RunState } from "../../../projections/run.ts";
import type { RunOutcome } from "../../../projections/runs.ts";
import { describeSelection, PAUSES } from "../../history/words/outreach.ts";
import { formatSentence } from "../../history/words/sentence.ts";
import { grouped } from "../../platform/counts-and-lists.ts";
import { momentIn } from "../../outreach/quota-day.ts";
import { placesLeft } from "../../outreach/run-limits.ts";
import { changesAt, isOpen } from "../../outreach/send-window.ts";
import { isoTime } from "../../platform/clock.ts";
import { BASES } from "../people-filter.ts";
import { newestEvents, type View } from "../page-context.ts";
import { ActionForm, ConfirmedAction, Field, Select } from "./action-form.tsx";
import { RunLink } from "./events.tsx";
import { Time } from "./time.tsx";
import { A } from "./link.tsx";

/** The run in progress and how to stop it. Without one, the end of the last run and the form that starts the next. */
export async function runCard(view: View<"account" | "quota" | "run" | "runs">): Promise<VNode> {
  const { current } = view.state("run");
  const [end] = await newestEvents(view, { types: ["RunFinished", "RunAbandoned"], limit: 1 });
  const title = current === null ? "No run in progress" : current.dry_run ? "Dry run in progress" : "Run in progress";
  return (
    <Card title={title}>
      {current === null ? (
        <LastRun view={view} end={end as EndOfRun | undefined} />
      ) : (
        <Progress view={view} run={current} />
      )}
      <Sender view={view} />
      <Window view={view} />
      {current === null ? <StartForm view={view} /> : <StopForm view={view} run={current} />}
      {view.state("runs").count === 0 ? null : (
        <p>
          <A href="/runs">All runs</A>
        </p>
      )}
    </Card>
  );
}

function Sender({ view }: { readonly view: View<"account"> }): VNode {
  const { authorized, user } = view.state("account");
  return (
    <p>
      {!authorized || user === null ? (
        <A href="/social/auth">Authorize an X account</A>
      ) : (
        <>
          Sends as <bdi>@{user.username}</bdi>.
        </>
      )}
    </p>
  );
}

/** The sending window. Renders nothing if messages always go out. */
function Window({ view: { settings, now } }: { readonly view: View }): VNode | null {
  const { window, timezone } = settings;
  if (window === undefined) return null;
  const change = changesAt(window.hours, timezone, now);
  return (
    <p>
      Messages go out <bdi>{window.text}</bdi> in{" "}
      {window.zone === "recipient" ? "the recipient's time zone, or in " : ""}
      <bdi>{timezone}</bdi>. The window is {isOpen(window.hours, timezone, now) ? "open" : "closed"} there
      <Time before=" until " at={change === undefined ? undefined : isoTime(change)} isExact />.
    </p>
  );
}

interface RunProps {
  readonly view: View<"quota" | "run" | "runs">;
  readonly run: RunState;
}

function Progress({ view, run }: RunProps): VNode {
  const { skipped, failed, in_doubt, waiting, stop_requested_at } = run;
  const selection = formatSentence(describeSelection(run));
  const isWaiting = waiting !== null && stop_requested_at === null && Date.parse(waiting.until) > view.now;
  return (
    <>
      {run.dry_run ? <p>It sends nothing.</p> : <Sent view={view} run={run} />}
      <p>
        {grouped(skipped)} skipped, {grouped(failed)} failed, {grouped(in_doubt)} in doubt.{" "}
        <RunLink view={view} runId={run.run_id} />.
      </p>
      {selection === "" ? null : <p>It was started{selection}.</p>}
      {isWaiting ? (
        <p>
          It waits {PAUSES[waiting.reason]}, and continues at <Time at={waiting.until} isExact />.
        </p>
      ) : null}
      {stop_requested_at === null ? null : (
        <p>
          It was asked to stop <Time at={stop_requested_at} />, and ends once what is in flight is settled. If its
          process died, <code>reachlog outreach reconcile</code> closes it.
        </p>
      )}
    </>
  );
}

/**
 * The number of sent messages, and the most that the run can send. The run may end earlier, when all recipients are
 * contacted.
 */
function Sent({ view, run: { sent } }: RunProps): VNode {
  const { settings } = view;
  const state = { quota: view.state("quota"), run: view.state("run") };
  const most = sent + placesLeft(state, settings, momentIn(settings.timezone, view.now));
  return (
    <>
      <p class="figure">
        {grouped(sent)} <small>sent, of at most {grouped(most)}</small>
      </p>
      <progress max={Math.max(1, most)} value={sent} aria-label="Sent, of the messages that the quota allows" />
    </>
  );
}

function StopForm({ view, run: { run_id, stop_requested_at } }: RunProps): VNode | null {
  if (stop_requested_at !== null) return null;
  return (
    <ConfirmedAction
      view={view}
      back="/"
      action="/console/run/stop"
      fields={{ run_id }}
      label="Stop run"
      says="It sends nothing more, except a message already on its way, settles what is in flight, and ends. The next run continues with the rest."
    >
      <button>Stop run</button>
    </ConfirmedAction>
  );
}

/** The form of a dry run. Its fields select recipients; left empty, it is for all of them. */
function StartForm({ view }: { readonly view: View }): VNode {
  const { template, sources, dailyLimit } = view.settings;
  const variants = template?.variants.map(({ label }) => label) ?? [];
  return (
    <ActionForm view={view} back="/" action="/console/run/dry">
      <button class="primary">Dry run</button>{" "}
      <small class="quiet">
        lists the recipients of <bdi>{template?.name ?? "a run"}</bdi>, and sends nothing
      </small>
      <details>
        <summary>Only for some recipients</summary>
        <div class="filter">
          <Field label="Messages, at most" type="number" name="limit" min={1} max={dailyLimit} />
          {variants.length < 2 ? null : <Select name="variant" label="Variant" values={variants} />}
          <Select name="basis" label="Basis" values={BASES} />
          {sources.length < 2 ? null : <Select name="source" label="Source" values={sources} />}
        </div>
      </details>
    </ActionForm>
  );
}

type EndOfRun = Recorded<"RunFinished"> | Recorded<"RunAbandoned">;

function LastRun({ view, end }: { readonly view: View<"runs">; readonly end: EndOfRun | undefined }): VNode {
  if (end === undefined) return <p class="empty">There was none yet.</p>;
  const { sent, skipped, failed, in_doubt, run_id } = end.data;
  const until = end.type === "RunFinished" ? end.data.until : undefined;
  return (
    <>
      <p class="figure">
        {grouped(sent)} <small>sent by the last one</small>
      </p>
      <p>
        {grouped(skipped)} skipped, {grouped(failed)} failed, {grouped(in_doubt)} in doubt.
      </p>
      <p>
        Ended <Time at={end.time} />: {ENDS[end.type === "RunFinished" ? end.data.reason : "abandoned"]}
        <Time before=" until " at={until} isExact />. <RunLink view={view} runId={run_id} />.
      </p>
    </>
  );
}

export const ENDS: Readonly<Record<RunOutcome["reason"], string>> = {
  completed: "no recipient is left",
  daily_limit_reached: "the day's quota is used up",
  limit_reached: "it reached the limit given at its start",
  window_closed: "the sending window is closed for the other recipients",
  too_many_failures: "too many messages failed",
  time_limit: "it reached the time limit of a run",
  stopped: "it was stopped",
  not_authorized: "X no longer accepts the authorization",
  network_unavailable: "X did not answer",
  request_rejected: "X refused a request",
  log_restored: "the log was restored on this day",
  clock_skewed: "the clocks of the machine and of the log are too far apart",
  credits_depleted: "the balance at X is empty",
  usage_capped: "a usage cap at X is reached",
  sender_restricted: "X restricts the account",
  missing_scope: "the authorization is too narrow",
  app_not_enrolled: "the X app has no access",
  fault: "an internal error, which the service logged",
  abandoned: "its process died",
};

export function Card({ title, children }: { readonly title: string; readonly children: ComponentChildren }): VNode {
  return (
    <section class="card">
      <h2>{title}</h2>
      {children}
    </section>
  );
}
