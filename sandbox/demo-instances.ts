import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/**
 * Runs instances of the service in separate processes, until it is disposed. `program` and `args` start one, with its
 * settings in the environment. `report` gets each line that they log as a warning or an error.
 */
export function createDemoInstances(
  [program, ...args]: readonly [string, ...string[]],
  report: (line: string) => void,
) {
  const environments = new Map<string, Readonly<Record<string, string>>>();
  const running = new Map<string, ChildProcess>();

  /** Starts an instance's process. Resolves with true once it listens, with false if it ends first. */
  function serve(url: string): Promise<boolean> {
    const child = spawn(program, args, {
      env: { PATH: process.env["PATH"], ...environments.get(url), LOG_LEVEL: "info" },
      stdio: ["ignore", "ignore", "pipe"],
      // A process group of its own, so that Ctrl-C reaches only the demo, which then stops the services.
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
    /** Returns all instances, running or not. Each keeps its `url` after a restart. */
    list: () => [...environments.keys()].map((url) => ({ url, isRunning: running.has(url) })),
    /** Kills an instance as a crash does, without a shutdown. No effect if it has already ended. */
    kill: (url: string) => void running.get(url)?.kill("SIGKILL"),
    /** Starts an instance again that has ended. No effect if it runs. */
    start(url: string): void {
      if (environments.has(url) && !running.has(url)) void serve(url);
    },
    /** Starts a new instance. Resolves when it listens; throws if it ends first. */
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

/** Starts a shell that kills the child when this process ends in any way: the shell's standard input is then closed. */
function endWithUs({ pid }: ChildProcess): ChildProcess {
  const script = 'cat >/dev/null; kill -KILL "$0"';
  return spawn("sh", ["-c", script, String(pid)], { stdio: ["pipe", "ignore", "ignore"], detached: true });
}
