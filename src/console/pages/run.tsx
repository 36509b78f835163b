/** @jsxImportSource preact */
import { EVENT_ID } from "../../history/find-event.ts";
import { eventsOfRun } from "../../history/run-events.ts";
import { runHref } from "../hrefs.ts";
import { ConsoleDocument } from "../document.tsx";
import { EventList, formatRun } from "../parts/events.tsx";
import { Time } from "../parts/time.tsx";
import { readNumber, type Made, type View } from "../view.ts";

const EVENTS_SHOWN = 200;

export async function runPage(view: View): Promise<Made> {
  const runId = (view.parameters["run_id"] ?? "").toLowerCase();
  if (!EVENT_ID.test(runId)) return undefined;
  const reading = { store: view.store, to: view.position, onProgress: () => {} };
  const from = readNumber(view, "from");
  const startedAt = view.state("runs").started.get(runId)?.started_at;
  const { events, next } = await eventsOfRun(reading, runId, { from, limit: EVENTS_SHOWN });
  const page = (
    <ConsoleDocument title={`Run ${formatRun(view, runId)}`} path="/" view={view}>
      <div class="head">
        <h1>
          Run {formatRun(view, runId)}
          {startedAt === undefined ? null : (
            <>
              , <Time at={startedAt} />
            </>
          )}
        </h1>
        <p class="breakable">
          <code>{runId}</code>
        </p>
      </div>
      {events.length > 0 || next !== undefined ? (
        <EventList view={view} events={events} />
      ) : (
        <p class="empty">
          {from === undefined ? "The log knows no run with this id." : "This run has no later events."}
        </p>
      )}
      <p>
        {from === undefined ? null : <a href={runHref(runId)}>Its beginning</a>}{" "}
        {next === undefined ? null : <a href={`${runHref(runId)}?from=${next}`}>Later events</a>}
      </p>
    </ConsoleDocument>
  );
  return from === undefined && events.length === 0 && next === undefined ? { missing: page } : page;
}
