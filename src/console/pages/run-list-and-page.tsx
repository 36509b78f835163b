/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import {
  ENDS,
  findRunId,
  nameRun,
  OUTCOMES,
  readRunList,
  readRunPage,
  RUN_COLUMNS,
  sayWaits,
  toSeconds,
  WAITS,
  type Outcome,
  type RowOutcome,
  type RunEndReason,
  type RunPage,
} from "../../history/run-list-and-page.ts";
import { formatCaller, toCapital } from "../../history/event-sentences.ts";
import { readMessage } from "../../outreach/run-and-dry-run-page-data.ts";
import { countInWords, formatDuration, formatUsd, grouped } from "../../platform/format-numbers-and-lists.ts";
import { ConsoleDocument, Head, Section } from "../document.tsx";
import { addressWith, dryRunHref, runHref } from "../hrefs.ts";
import { consolePage, readChoice, readNumber, type Made, type View } from "../page-context.ts";
import { RecipientLink } from "../parts/event-sentence.tsx";
import { Badge, Icon, type BadgeState, type IconName } from "../parts/icon-and-badge.tsx";
import { A, Tabs } from "../parts/links-forms-and-tabs.tsx";
import { toSpaces } from "../parts/action-form.tsx";
import { findWeek, Week } from "../parts/run-card.tsx";
import { RunForm } from "../parts/run-form.tsx";
import {
  breakable,
  type Cell,
  createSortedHeads,
  ListPages,
  type NamedValue,
  NamedValues,
  numbers,
  Table,
} from "../parts/table.tsx";
import { Time, toIso } from "../parts/time.tsx";
import { readListPage, readSort } from "../read-sort-from-address.ts";
import { missingPage } from "./error-page.tsx";
import { formatContactName } from "./people.tsx";

/** Number of rows on one page of the list of runs. */
const RUNS_SHOWN = 50;

/** Page that lists all runs and dry runs, newest first, and how each ended. */
export const runsPage = consolePage({ reads: ["account", "run", "runs"], render: renderRuns });

async function renderRuns(view: View<"account" | "run" | "runs">): Promise<VNode> {
  const sort = readSort(view, RUN_COLUMNS, { by: "run", order: "descending" });
  const { runs, next, count, dry, kept } = await readRunList(view, readListPage(view, sort, RUNS_SHOWN));
  const hasContacted = runs.some(({ contacted }) => contacted > 0);
  const head = createSortedHeads(view, "/runs", sort);
  const columns = [
    head("run", "run", "descending"),
    "started",
    head("message", "message", "ascending", "breakable"),
    "by",
    ...(["sent", "skipped", "failed"] as const).map((name) => head(name, name, "descending", "number")),
    ...(hasContacted ? numbers("contacted earlier") : []),
    { head: "took", kind: "number" } as const,
    { head: "cost", kind: "number" } as const,
    { head: "ended", kind: "state" } as const,
  ];
  return (
    <ConsoleDocument title="Runs" path="/runs" view={view}>
      <Head
        title="Runs"
        says={`${countInWords(count, "run")} and ${countInWords(dry, "dry run")}. A dry run sends nothing and has no number.`}
      >
        {view.state("run").current === null ? <RunForm limits={{}} isFirst /> : null}
      </Head>
      <Table
        label="Runs"
        columns={columns}
        rows={runs.flatMap((run, at) => {
          const cells = toCells(run, hasContacted);
          const week = findWeek(view, run.started_at);
          const isFirst = at === 0 || findWeek(view, runs[at - 1]!.started_at).from !== week.from;
          return sort.by === "run" && isFirst ? [[<Week view={view} week={week} />], cells] : [cells];
        })}
        empty="There was no run yet. A dry run shows the recipients of the first one."
        isTall
      />
      {kept < count + dry ? <p class="quiet">The newest {grouped(kept)} are listed.</p> : null}
      <ListPages path="/runs" rows="runs" next={next} />
    </ConsoleDocument>
  );
}

type Run = Awaited<ReturnType<typeof readRunList>>["runs"][number];

function toCells(run: Run, hasContacted: boolean): readonly Cell[] {
  const { runId, number, started_at, caller, template, sent, skipped, contacted, failed, end } = run;
  const usd = end?.usd ?? null;
  return [
    <A href={number === null ? dryRunHref(runId) : runHref(runId)}>
      {number === null ? "Dry run" : `Run ${grouped(number)}`}
    </A>,
    <Time at={started_at} as="weekday" />,
    template && <bdi>{template}</bdi>,
    caller && <bdi>{formatCaller(caller)}</bdi>,
    ...(number === null ? [null, null, null] : [sent, skipped, failed]),
    ...(hasContacted ? [contacted === 0 ? null : contacted] : []),
    end && formatDuration(toSeconds(started_at, end.at)),
    usd === null ? null : formatUsd(usd),
    number === null && end !== null ? (
      <Badge state={["neutral", "eye", `would send ${grouped(sent)}`]} />
    ) : (
      <span title={end === null ? undefined : ENDS[end.reason]}>
        {end !== null && WANTED.includes(end.reason) ? (
          toCapital(toSpaces(end.reason))
        ) : (
          <Badge state={toEndState(end?.reason)} />
        )}
      </span>
    ),
  ];
}

/** Reasons for a run's end that are normal, or that an operator wanted. */
const WANTED: readonly RunEndReason[] = ["completed", "limit_reached", "daily_limit_reached", "window_closed"];

function toEndState(reason: RunEndReason | undefined): BadgeState {
  if (reason === undefined) return ["info", "play", "in progress"];
  if (WANTED.includes(reason)) return ["good", "check", "finished"];
  return reason === "stopped" ? ["neutral", "pause", "stopped"] : ["bad", "triangleAlert", "broke off"];
}

export const runPage = consolePage({
  reads: ["account", "campaigns", "contacts", "results", "run", "runs"],
  render: renderRun,
});

type RunView = View<"account" | "campaigns" | "contacts" | "results" | "run" | "runs">;

interface RunProps {
  readonly view: RunView;
  readonly runId: string;
  readonly run: RunPage;
}

async function renderRun(view: RunView): Promise<Made> {
  const runId = findRunId(view, view.parameters["run_id"] ?? "");
  const only = readChoice(view, "outcome", TABS);
  const run = await readRunPage(view, { runId, from: readNumber(view, "from"), only });
  if (run?.isDry === true && run.end !== undefined) return { location: dryRunHref(runId), disclosed: {} };
  if (run === undefined) {
    if (!/^[\da-f-]{36}$/.test(runId)) return undefined;
    const link = <A href="/runs">All runs</A>;
    return missingPage(view, "/runs", "No such run", <>The log has no run with this id. {link}</>);
  }
  const { template, startedAt, end, before, after } = run;
  const name = nameRun(view.state("runs"), runId);
  return (
    <ConsoleDocument title={name} path="/runs" view={view}>
      <Head
        above={<A href="/runs">Runs</A>}
        title={
          <span title={runId}>
            {name} <Badge state={toEndState(end?.reason)} />
          </span>
        }
        says={
          <>
            {template === undefined ? null : <bdi>{template} · </bdi>}
            <Time at={startedAt} as="weekday" />
            <Time before=" to " at={end?.at} as="clock" />
          </>
        }
      >
        <p class="actions">
          <Step to={before} icon="chevronLeft" label="The run before" />
          <Step to={after} icon="chevronRight" label="The next run" />
          <A class="button" href={`/activity?run=${runId}`}>
            Events
          </A>
        </p>
      </Head>
      <section class="outcome card" aria-label="Outcome">
        <Counts run={run} />
        <Strip run={run} />
      </section>
      <div class="columns run-cols">
        <Rows view={view} runId={runId} run={run} />
        <Facts view={view} runId={runId} run={run} />
      </div>
    </ConsoleDocument>
  );
}

function Step({ to, icon, label }: { to: string | undefined; icon: IconName; label: string }) {
  if (to === undefined) return null;
  return (
    <A class="button" href={runHref(to)} aria-label={label}>
      <Icon name={icon} />
    </A>
  );
}

const LOOKS: Readonly<Record<RowOutcome, readonly [icon: IconName, words: string]>> = {
  sent: ["send", "Sent"],
  skipped: ["skipForward", "Skipped"],
  failed: ["triangleAlert", "Failed"],
  in_doubt: ["circleQuestionMark", "In doubt"],
  contacted: ["skipForward", "Contacted earlier"],
  not_reached: ["clock", "Not reached"],
};

function Counts({ run: { counts, variants } }: { readonly run: RunPage }): VNode {
  const notes: Partial<Record<Outcome, ComponentChildren>> = {
    sent: [...(variants ?? [])].map(([variant, count]) => `${grouped(count)} of ${variant}`).join(", "),
    skipped: counts?.contacted ? `${grouped(counts.contacted)} contacted earlier` : "",
    in_doubt: counts?.in_doubt ? <A href="/people?status=in_doubt">Needs your decision</A> : "",
  };
  return (
    <dl class="outcomes">
      {OUTCOMES.map((outcome) => (
        <div>
          <dt class={`swatch ${outcome}`}>{LOOKS[outcome][1]}</dt>
          <dd>
            <b class="figure">{grouped(counts?.[outcome] ?? 0)}</b>
            <small class="quiet">{notes[outcome]}</small>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Outcomes of a run's rows, in the order of the tabs. */
const TABS = [...OUTCOMES, "contacted"] as const;

/** True if the strip of a run shows the outcome by a small mark. */
function isSmall(outcome: string): boolean {
  return outcome === "skipped" || outcome === "contacted";
}

/** Length of a run in ms, below which its times are shown with seconds, because many would be in the same minute. */
const SECONDS_SHOWN_MS = 10 * 60_000;

/** Shows the run's time as a strip, with a mark for each recipient and the waits between them. */
function Strip({ run: { marks, waits, startedAt, end } }: { readonly run: RunPage }): VNode | null {
  const from = Date.parse(startedAt);
  const to = Math.max(from + 1_000, ...marks.map(({ at }) => at), ...(end === undefined ? [] : [Date.parse(end.at)]));
  if (marks.length === 0) return null;
  const x = (at: number) => `${(((at - from) / (to - from)) * 99).toFixed(2)}%`;
  const style = to - from < SECONDS_SHOWN_MS ? "seconds" : "clock";
  const shown = new Map(marks.map((mark) => [`${x(mark.at)}${mark.outcome}`, mark]));
  return (
    <div class="strip">
      <h2>
        <Time at={startedAt} as={style} /> to <Time at={toIso(to)} as={style} />
      </h2>
      <small class="quiet">{sayWaits(waits)}</small>
      <svg role="img" aria-label={`${countInWords(marks.length, "recipient")} over time`}>
        {waits.map((wait) => (
          <rect class="wait" x={x(wait.from)} width={x(from + wait.to - wait.from)} y="4" height="30">
            <title>{WAITS[wait.reason]}</title>
          </rect>
        ))}
        {[...shown.values()].map(({ at, outcome = "open" }) => (
          <rect
            class={outcome}
            x={x(at)}
            y={isSmall(outcome) ? 22 : 8}
            width="5"
            height={isSmall(outcome) ? 12 : 26}
            rx="2"
          />
        ))}
      </svg>
      <p class="quiet">
        <Time at={startedAt} as={style} />
        <Time at={toIso((from + to) / 2)} as={style} />
        <Time at={toIso(to)} as={style} />
      </p>
    </div>
  );
}

function Rows({ view, runId, run: { rows, next, counts } }: RunProps): VNode {
  const only = readChoice(view, "outcome", TABS);
  const tabs = TABS.filter((outcome) => outcome !== "contacted" || counts?.contacted);
  const href = (outcome: RowOutcome | undefined) =>
    addressWith(runHref(runId), view.query, { outcome, from: undefined });
  const all = counts === undefined ? 0 : TABS.reduce((sum, outcome) => sum + counts[outcome], 0);
  return (
    <section aria-label="Messages">
      <Tabs
        label="Outcome"
        tabs={[undefined, ...tabs].map((outcome) => [
          href(outcome),
          outcome === undefined ? `All ${grouped(all)}` : `${LOOKS[outcome][1]} ${grouped(counts?.[outcome] ?? 0)}`,
          only === outcome,
        ])}
      />
      <Table
        label="Recipients"
        columns={[
          "recipient",
          { head: "outcome", kind: "state" },
          "time",
          "variant",
          ...breakable("since then, or why"),
        ]}
        rows={rows.map(({ recipient, time, outcome, variant, why }) => [
          <RecipientLink recipient={recipient} name={formatContactName(recipient)} />,
          <Out outcome={outcome} />,
          <Time at={time} as="clock" />,
          variant,
          why === "" ? null : why,
        ])}
        empty="No recipient has this outcome."
        isTall
      />
      <p>
        {readNumber(view, "from") === undefined ? null : <A href={href(only)}>The first</A>}{" "}
        {next === undefined ? null : (
          <A href={addressWith(runHref(runId), view.query, { from: String(next) })}>More recipients</A>
        )}
      </p>
    </section>
  );
}

function Out({ outcome }: { readonly outcome: RowOutcome | undefined }): VNode {
  const [icon, words] = outcome === undefined ? (["clock", "On its way"] as const) : LOOKS[outcome];
  return (
    <span class={`out ${outcome ?? ""}`}>
      <Icon name={icon} />
      {words}
    </span>
  );
}

function Facts({ view, runId, run }: RunProps): VNode {
  const { end, until, startedAt, waits, cost, caller, limit, recipients, rules } = run;
  const limits = [
    recipients === undefined ? [] : `for ${countInWords(recipients, "named recipient")}`,
    limit === undefined ? [] : `for at most ${countInWords(limit, "message")}`,
  ];
  const message = readMessage(view.state("campaigns"), view.settings, run.campaign);
  const facts: NamedValue[] = [
    [
      "Ended",
      end === undefined ? (
        "It is in progress"
      ) : (
        <>
          {toCapital(ENDS[end.reason])}
          <Time before=" until " at={until} />
        </>
      ),
    ],
    ["Took", end === undefined ? "" : <Fact of={formatDuration(toSeconds(startedAt, end.at))}>{sayWaits(waits)}</Fact>],
    ["Cost", cost === undefined ? "not recorded" : <Fact of={formatUsd(cost.usd)}>{cost.parts.join(", ")}</Fact>],
    [
      "Started by",
      <Fact of={caller === undefined ? "unknown" : formatCaller(caller)}>{limits.flat().join(", ")}</Fact>,
    ],
    ["Quota", rules === undefined ? "not recorded" : `${grouped(rules.daily_limit)} messages a day`],
    ["Template", run.template ?? "not recorded"],
    ["Proof", <A href={`/activity?run=${runId}&show=everything`}>Its events, each with its hash</A>],
  ];
  return (
    <div class="stack">
      <Section id="about" title="About this run">
        <NamedValues of={facts} />
      </Section>
      {message === undefined || message.id !== rules?.template ? null : (
        <Section id="texts" title={message.name ?? "Message"} class="card">
          <pre class="bubble message">{message.text}</pre>
        </Section>
      )}
    </div>
  );
}

function Fact({ of, children }: { readonly of: string; readonly children: ComponentChildren }): VNode {
  return (
    <>
      <bdi>{of}</bdi>
      <small class="quiet">{children}</small>
    </>
  );
}
