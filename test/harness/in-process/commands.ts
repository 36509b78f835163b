import { loadConfig } from "../../../src/config/config.ts";
import type { MakeCommand } from "../../../src/commands/shared/command.ts";
import { createEventLog, type EventMetadata, type NewEvent } from "../../../src/log/event-log.ts";
import { openLog, type OpenedLog } from "../../../src/privacy/open-log.ts";
import { capture, type Captured } from "../capture-command.ts";
import { METADATA } from "./temporary-log.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const START = Date.parse("2025-11-20T10:00:00.000Z");

/** Test harness that runs commands on a real log whose events are a minute apart and have the ids of `idAt`. */
export interface CommandHarness extends AsyncDisposable {
  readonly store: OpenedLog;
  readonly env: Record<string, string>;
  readonly directory: string;
  append(stream: string, newEvents: readonly NewEvent[], metadata?: EventMetadata): Promise<void>;
  /** Advances the clock by `ms`, in addition to the minute of each event. */
  later(ms: number): void;
  run(command: MakeCommand, ...args: string[]): Promise<Captured>;
  /** Runs a command that checks now and then if it should stop. At its n-th check, the answer is yes. */
  interruptedAt(n: number, command: MakeCommand, ...args: string[]): Promise<Captured>;
}

/**
 * Opens the test harness of commands. `startMs` is when the log begins, by default in November 2025. `more` adds
 * settings of the log and the commands.
 */
export async function openCommands(startMs = START, more: Record<string, string> = {}): Promise<CommandHarness> {
  const folder = temporaryFolder();
  let next = 1;
  let passedMs = 0;
  const env = { DATABASE_URL: `sqlite:${folder.file("log.sqlite")}`, ...more };
  const config = loadConfig(env, () => "");
  const store = await openLog(config, { clock: () => startMs + passedMs + next * 60_000 });
  const eventLog = createEventLog(store, () => idAt(next));
  return {
    store,
    env,
    directory: folder.path,
    async append(stream, newEvents, metadata = METADATA) {
      // Each event gets a separate append, because all events of one append would have the same time.
      for (const newEvent of newEvents) {
        await eventLog.append(stream, [newEvent], metadata);
        next++;
      }
    },
    later: (ms) => void (passedMs += ms),
    run: (command, ...args) => capture(command, args, { env }),
    interruptedAt(n, command, ...args) {
      let asked = 0;
      const interrupt = new AbortController();
      const signal = new Proxy(interrupt.signal, {
        get(target, name) {
          if (name === "aborted" && ++asked === n) interrupt.abort(130);
          return Reflect.get(target, name, target);
        },
      });
      return capture(command, args, { env, signal });
    },
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

/** Returns the time at which the event at this position is recorded. */
export function timeAt(position: number): string {
  return new Date(START + position * 60_000).toISOString();
}

/** Returns the id of the event at this position: a UUIDv7 of its time. */
export function idAt(position: number): string {
  const ms = (START + position * 60_000).toString(16).padStart(12, "0");
  return `${ms.slice(0, 8)}-${ms.slice(8)}-7000-8000-${String(position).padStart(12, "0")}`;
}
