import { escapeControls } from "./escape-control-characters.ts";

const LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LEVELS)[number];

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * Logger for operators, which writes one JSON object a line to stderr. The caller chooses the fields: never a token,
 * never personal data.
 */
export type Logger = Readonly<Record<LogLevel, (message: string, fields?: LogFields) => void>>;

export function createLogger(level: LogLevel, write: (line: string) => void, clock: () => number): Logger {
  const threshold = LEVELS.indexOf(level);
  return forEachLevel((name, message, fields) => {
    if (LEVELS.indexOf(name) < threshold) return;
    const record = { time: new Date(clock()).toISOString(), level: name, message, ...fields };
    // Escapes control characters, so that no value can forge a line, or steer the terminal of the operator who reads
    // it.
    const line = `${escapeControls(JSON.stringify(record))}\n`;
    try {
      write(line);
    } catch {
      // A full disk must not end the work that was to be logged, such as deliveries.
    }
  });
}

function forEachLevel(log: (level: LogLevel, message: string, fields: LogFields | undefined) => void): Logger {
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => log(level, message, fields);
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** Converts a fault to fields of a log line: its name, message and stack, without the values of its cause. */
export function errorFields(fault: unknown): LogFields {
  if (!(fault instanceof Error)) return { error: String(fault) };
  return { error: `${fault.name}: ${fault.message}`, stack: fault.stack };
}

/**
 * Returns the ids by which the log lines of one request are found, here and in other services, from the metadata of the
 * request's events.
 */
export function requestFields({
  request_id,
  traceparent,
}: {
  readonly request_id?: string;
  readonly traceparent?: string;
}): Readonly<Record<"request_id" | "trace_id", string | undefined>> {
  return { request_id, trace_id: traceparent?.split("-")[1] };
}

/** Returns a logger that adds these fields to each of its lines. */
export function withFields(logger: Logger, common: LogFields): Logger {
  return forEachLevel((level, message, fields) => logger[level](message, { ...common, ...fields }));
}

/**
 * Creates a function that logs the first of consecutive faults of repeated work, and none after it until the work
 * succeeds.
 */
export function createFaultReport(log: Logger["warn"], message: string, fields?: LogFields) {
  let isFailing = false;
  return {
    succeeded(): void {
      isFailing = false;
    },
    failed(fault: unknown): void {
      if (!isFailing) log(message, { ...fields, ...errorFields(fault) });
      isFailing = true;
    },
  };
}
