import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/**
 * Runs several services, each in a separate process, until it is disposed. `report` gets each line that they log as a
 * warning or an error.
 */
export function createDemoInstances(report: (line: string) => void) {
  const environments = new Map<string, Readonly<Record<string, string>>>();
  const running = new Map<string, ChildProcess>();

  /** Resolves with true once it listens, with false if it ends first. */
  function serve(url: string): Promise<boolean> {
    const child = spawn(process.execPath, [process.argv[1] ?? "", "serve"], {
      env: { PATH: process.env["PATH"], ...environments.get(url), LOG_LEVEL: "info" },
      stdio: ["ignore", "ignore", "pipe"],
      // Ctrl-C must reach only the demo, which then stops the services.
      detached: true,
    });
    const listening = Promise.withResolvers<boolean>();
    const keeper = endWithUs(child);
    running.set(url, child);
    child.once("error", (fault) => report(`${fault.message}\n`));
    child.once("close", () => {
      keeper.kill("SIGKILL");
      running.delete(url);
      listening.resolve(false);
    });
    createInterface(child.stderr).on("line", (line) => {
      if (line.includes('"message":"listening"')) listening.resolve(true);
      if (!line.includes('"level":"info"')) report(`${line}\n`);
    });
    return listening.promise;
  }

  return {
    /** All instances, running or not. `url` identifies one, also after a restart. */
    list: () => [...environments.keys()].map((url) => ({ url, isRunning: running.has(url) })),
    /** Ends an instance as a crash does, without a shutdown. No effect if it has ended. */
    kill: (url: string) => void running.get(url)?.kill("SIGKILL"),
    /** Restarts an instance that has ended. No effect if it runs. */
    start(url: string): void {
      if (environments.has(url) && !running.has(url)) void serve(url);
    },
    /** Starts one more instance. Resolves when it listens; throws if it ends first. */
    async add(url: string, env: Readonly<Record<string, string>>): Promise<void> {
      environments.set(url, env);
      if (!(await serve(url))) throw new Error(`the service at ${url} ended as it started`);
    },
    async [Symbol.asyncDispose](): Promise<void> {
      const ending = [...running.values()].map((child) => once(child, "close"));
      for (const child of running.values()) child.kill("SIGTERM");
      await Promise.all(ending);
    },
  };
}

/** Kills the child when this process dies, by any signal: the standard input of the shell then ends. */
function endWithUs({ pid }: ChildProcess): ChildProcess {
  const script = 'cat >/dev/null; kill -KILL "$0"';
  return spawn("sh", ["-c", script, String(pid)], { stdio: ["pipe", "ignore", "ignore"], detached: true });
}
