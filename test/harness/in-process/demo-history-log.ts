import { openLogForHistory } from "../../../src/commands/development/open-log-for-invented-history.ts";
import { writeStory } from "../../../sandbox/invented-history/write-story.ts";
import { NO_TERMINAL } from "../capture-command.ts";
import { temporaryFolder } from "../temporary-folder.ts";

/** Log that {@link writeBusyLog} has written. */
export interface BusyLog extends Disposable {
  /** Settings that open the log. */
  readonly env: Record<string, string>;
}

const BUSY_SETTINGS = { LINK_BASE: "https://go.example", MESSAGE_TEMPLATE: "Hi {{name|there}}", PORT: "3000" };

/** Opens a log to which the demo's history can be written; the events get their times from `clock`. */
export function openBusyLog(env: Record<string, string>, clock: () => number) {
  return openLogForHistory({ ...NO_TERMINAL, env: { ...BUSY_SETTINGS, ...env } }, clock);
}

/**
 * Writes the demo's busy weeks to a new log in a temporary folder, ending at `now`, in ms since the epoch. `spanMs`:
 * the time into which they are compressed, for example one day with 36 runs and 3,000 clicks.
 */
export async function writeBusyLog(now: number, spanMs?: number): Promise<BusyLog> {
  const folder = temporaryFolder();
  const env = { DATABASE_URL: `sqlite:${folder.file("log.sqlite")}`, ...BUSY_SETTINGS };
  let frozenAt = now - 50 * 86_400_000;
  let messages = 0;
  await using log = await openBusyLog(env, () => frozenAt);
  await writeStory({
    log,
    now,
    clock: { freezeAt: (ms) => void (frozenAt = ms) },
    mailbox: { deliver: () => String(1_800_000_000_000_000_000n + BigInt(++messages)) },
    ...(spanMs !== undefined && { spanMs }),
  });
  return { env, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}
