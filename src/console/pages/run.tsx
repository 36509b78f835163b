/** @jsxImportSource preact */
import type { VNode } from "preact";
import { RUNS_MAX, type RunOutcome, type RunSummary } from "../../../projections/runs.ts";
import { EVENT_ID } from "../../history/find-event.ts";
import { formatCaller } from "../../history/words/sentence.ts";
import { grouped } from "../../platform/counts-and-lists.ts";
import { eventsOfRun, findRunCallers, readRunCounts } from "../../history/run-events.ts";
import { runHref } from "../hrefs.ts";
import { ConsoleDocument } from "../document.tsx";
import { EventList, formatRun } from "../parts/events.tsx";
import { Badge, type BadgeState } from "../parts/icon.tsx";
import { ENDS } from "../parts/run-card.tsx";
import { breakable, type Cell, createSortedHeads, ListPages, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { createSortedPage, readPlace, readSort, toSortValue } from "../sorted-page.ts";
import { consolePage, readNumber, toReading, type Made, type View } from "../page-context.ts";
import { A } from "../parts/link.tsx";

const EVENTS_SHOWN = 200;

/** Rows of one page of the list. */
const RUNS_SHOWN = 50;

const RUN_COLUMNS = ["run", "message", "sent", "skipped", "failed"] as const;
type RunColumn = (typeof RUN_COLUMNS)[number];

/** All runs, the newest first, and how each ended. */
export const runsPage = consolePage({
  reads: ["account", "run", "runs"],
  render: renderRuns,
});

async function renderRuns(view: View<"account" | "run" | "runs">): Promise<VNode> {
  const { started, count } = view.state("runs");
  const sort = readSort(view, RUN_COLUMNS, { by: "run", order: "descending" });
  const sorted = createSortedPage(sort.order, readPlace(view), RUNS_SHOWN);
  for (const [runId, run] of started) sorted.add(valueIn(view, runId, run, sort.by), runId);
  const { keys, next } = sorted.end();
  const callers = await findRunCallers(
    view.store,
    keys.map((runId) => started.get(runId)!.position),
  );
  const head = createSortedHeads(view, "/runs", sort);
  const columns = [
    head("run", "run", "descending"),
    "began",
    ...breakable("by"),
    head("message", "message", "ascending", "breakable"),
    ...(["sent", "skipped", "failed"] as const).map((name) => head(name, name, "descending", "number")),
    "end",
  ];
  return (
    <ConsoleDocument title="Runs" path="/" view={view}>
      <h1>Runs</h1>
      {count === 0 ? (
        <p class="empty">
          There was none yet. The <A href="/">Overview</A> starts one with a dry run.
        </p>
      ) : (
        <Table
          label="Runs"
          columns={columns}
          rows={keys.map((runId) => toCells(view, runId, started.get(runId)!, callers.get(runId)))}
          isTall
        />
      )}
      <p class="quiet">
        A dry run sends nothing: its figures are what it would have sent and skipped.
        {count > RUNS_MAX ? ` The newest ${grouped(RUNS_MAX)} of ${grouped(count)} runs are listed.` : ""}
      </p>
      <ListPages view={view} path="/runs" rows="runs" next={next} />
    </ConsoleDocument>
  );
}

/** The value by which a run is sorted. */
function valueIn(view: View<"run">, runId: string, run: RunSummary, by: RunColumn): string {
  if (by === "run") return toSortValue(run.number);
  return by === "message" ? (run.template ?? "") : toSortValue(readRunCounts(view.state("run"), runId, run)[by]);
}

function toCells(view: View<"run">, runId: string, run: RunSummary, caller: string | undefined): readonly Cell[] {
  const { number, started_at, dry_run, template, end } = run;
  const { sent, skipped, failed } = readRunCounts(view.state("run"), runId, run);
  return [
    <A href={runHref(runId)}>
      {dry_run ? "Dry run" : "Run"} {grouped(number)}
    </A>,
    <Time at={started_at} />,
    caller && <bdi>{formatCaller(caller)}</bdi>,
    template && <bdi>{template}</bdi>,
    sent,
    skipped,
    failed,
    <>
      <Badge state={toEndState(end?.reason)} />
      {end === null || end.reason === "stopped" ? "" : ` ${ENDS[end.reason]}`}
    </>,
  ];
}

/** Ends that an operator wanted, or that are normal for a run. */
const WANTED: readonly RunOutcome["reason"][] = ["completed", "limit_reached", "daily_limit_reached", "window_closed"];

function toEndState(reason: RunOutcome["reason"] | undefined): BadgeState {
  if (reason === undefined) return ["info", "play", "in progress"];
  if (WANTED.includes(reason)) return ["good", "check", "done"];
  return reason === "stopped" ? ["neutral", "pause", "stopped"] : ["bad", "triangle-alert", "broke off"];
}

export const runPage = consolePage({
  reads: ["account", "runs"],
  render: renderRun,
});

async function renderRun(view: View<"account" | "runs">): Promise<Made> {
  const runId = (view.parameters["run_id"] ?? "").toLowerCase();
  if (!EVENT_ID.test(runId)) return undefined;
  const reading = toReading(view);
  const from = readNumber(view, "from");
  const startedAt = view.state("runs").started.get(runId)?.started_at;
  const { events, next } = await eventsOfRun(reading, runId, { from, limit: EVENTS_SHOWN });
  const page = (
    <ConsoleDocument title={`Run ${formatRun(view, runId)}`} path="/" view={view}>
      <div class="head">
        <h1>
          Run {formatRun(view, runId)}
          <Time before=", " at={startedAt} />
        </h1>
        <p class="breakable">
          <code>{runId}</code> · <A href="/runs">All runs</A>
        </p>
      </div>
      {events.length > 0 || next !== undefined ? (
        <EventList view={view} events={events} />
      ) : (
        <p class="empty">{from === undefined ? "The log has no run with this id." : "This run has no later events."}</p>
      )}
      <p>
        {from === undefined ? null : <A href={runHref(runId)}>Its beginning</A>}{" "}
        {next === undefined ? null : <A href={`${runHref(runId)}?from=${next}`}>Later events</A>}
      </p>
    </ConsoleDocument>
  );
  return { page, isMissing: from === undefined && events.length === 0 && next === undefined };
}
