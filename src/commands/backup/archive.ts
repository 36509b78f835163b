import { makeId } from "../../platform/clock.ts";
import { archiveEvents, lastBefore } from "../../log/archive.ts";
import { createEventLog } from "../../log/event-log.ts";
import { parseMoment, startOfDay } from "../../projector/parse-moment.ts";
import { locateLog } from "../../service/log-place.ts";
import type { LogStore } from "../../../events/catalog.ts";
import { Command, JSON_OPTION, type MakeCommand } from "../shared/command.ts";
import { COMMAND_METADATA, requireLog } from "../shared/log-session.ts";
import { withProgress } from "../shared/progress.ts";
import { answer, type Terminal } from "../shared/terminal.ts";

export const archive: MakeCommand = (terminal) =>
  new Command("archive")
    .summary("move old events out of the database into compressed segments")
    .description(
      `Moves the events before a day, a time or a position into sealed segment files,
and never the newest event. All commands and the service read them there as before:
no position, hash, head or proof changes. Each segment is written, read back and
proved before its events leave the database, in one transaction with its record. A
killed command loses nothing, and the next one goes on. The log records the work
(EventsArchived).

Segments are in ARCHIVE_FOLDER, by default beside a log that is a file. From then on
they are the log: keep them as long, and back them up with it. reachlog backup holds
their events.

A log in a file becomes smaller only if no service has it: then the rest is rewritten,
which needs as much free room again. A server reuses the room by itself.`,
    )
    .requiredOption(
      "--before <moment>",
      "a day such as 2025-01-01, which means its begin in QUOTA_TIMEZONE; a time in ISO 8601; or a position",
    )
    .option(...JSON_OPTION)
    .examples("reachlog archive --before 2025-01-01")
    .action(async ({ before, json }) => {
      const config = await requireLog(terminal);
      const { store: place } = locateLog(config);
      const archived = await archiveBefore(terminal, await place.open(), before, config.outreach.timezone);
      const kept = archived.events === 0 ? undefined : await place.compact("reachlog archive");
      const { events, segments, bytes, position } = archived;
      const text =
        events === 0
          ? `nothing to archive: the archive ends at position ${position}\n`
          : `${events} events are archived in ${segments} segments of ${bytes} bytes; the archive ends at position ${position}\n`;
      answer(terminal, json, { position, events, segments, bytes }, text);
      if (kept !== undefined) terminal.err(`${kept}\n`);
    });

async function archiveBefore(terminal: Terminal, opened: LogStore, before: string, timezone: string) {
  await using store = opened;
  const to = await lastToArchive(store, before, timezone);
  const { last: start = 0 } = (await store.archived()).at(-1) ?? {};
  const { append } = createEventLog(store, makeId);
  const archived = await withProgress(terminal, "archiving", Math.max(0, to - start), (onProgress) =>
    archiveEvents({ store, append }, COMMAND_METADATA, { to }, async ({ last }) => {
      onProgress(last - start);
      return !terminal.signal.aborted;
    }),
  );
  return archived ?? { position: start, events: 0, segments: 0, bytes: 0 };
}

/** The last position before a moment. Throws a ServiceError (usage). */
async function lastToArchive(store: LogStore, before: string, timezone: string): Promise<number> {
  const day = startOfDay(before, timezone);
  const { to, until } = day === undefined ? parseMoment(before, timezone) : { to: undefined, until: day };
  return until === undefined ? Math.max(0, (to ?? 0) - 1) : lastBefore(store, until.getTime());
}
