import { until, type Running } from "../harness/process.ts";

/** Longer than an orderly stop, so that a service that does not end fails its test and not the whole suite. */
const END_MS_MAX = 20_000;

/** The exit code, once the process has ended. */
export async function exitCodeOf({ process }: Running): Promise<number | null> {
  return until(
    () => Promise.resolve(process.exitCode),
    (code) => code !== null,
    END_MS_MAX,
  );
}

/** Stops it in order. Answers the exit code. */
export async function stop(service: Running): Promise<number | null> {
  service.process.kill("SIGTERM");
  return exitCodeOf(service);
}
