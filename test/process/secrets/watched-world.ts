import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { SandboxOptions } from "../../../sandbox/sandbox.ts";
import { ended, openInstallation, type Running, type Installation } from "../../harness/process.ts";
import type { Captured } from "../../harness/capture-command.ts";
import { readStoredStates } from "../../harness/stored-states.ts";
import type { Written } from "./search-bytes-for-secrets.ts";

/** Installation that records all outputs and answers of its processes, to search them for secrets. */
export interface WatchedWorld extends Installation {
  readonly written: Written[];
  keep(where: string, text: string | Buffer): void;
  /** Records the content of all current files, and the uncompressed content of the log's files. */
  keepFiles(moment: string): Promise<void>;
  /**
   * Records an answer to search it for secrets, except for the headers in `meant`, whose purpose is to give this caller
   * a secret.
   */
  keepAnswer(where: string, answer: Response, meant?: readonly string[]): Promise<string>;
  /** Ends a service with a signal, and records its output. */
  end(service: Running, signal: "SIGTERM" | "SIGKILL"): Promise<void>;
}

export async function openWatchedWorld(options: Partial<SandboxOptions> = {}): Promise<WatchedWorld> {
  const world = await openInstallation(options);
  const written: Written[] = [];
  const keep = (where: string, text: string | Buffer): void => void written.push({ where, bytes: Buffer.from(text) });

  // The folder for temporary files is inside the installation's folder, so that files of a runtime or a library are
  // searched too.
  const temporary = join(world.directory, "temporary");
  mkdirSync(temporary);
  Object.assign(world.env, { TMPDIR: temporary, HOME: temporary });

  const start: Installation["start"] = (args, more, flags) => {
    const child = world.start(args, more, flags);
    keep(`the process list of ${args.join(" ")}`, readFileSync(`/proc/${child.pid}/cmdline`));
    return child;
  };
  const recorded = async (args: readonly string[], running: Promise<Captured>): Promise<Captured> => {
    const all = await running;
    keep(`the output of ${args.join(" ")}`, all.out + all.err);
    return all;
  };
  return {
    ...world,
    written,
    keep,
    start,
    execute: (...args) => recorded(args, ended(start(args))),
    command: (...args) => recorded(args, world.command(...args)),
    async keepFiles(moment) {
      for (const path of filesIn(world.directory)) keep(`${path} ${moment}`, readFileSync(join(world.directory, path)));
      const states = await readStoredStates(join(world.directory, "reachlog.sqlite"));
      for (const [name, text] of Object.entries(states)) keep(`${name} ${moment}`, text);
    },
    async keepAnswer(where, answer, meant = []) {
      const headers = [...answer.headers].filter(([name]) => !meant.includes(name));
      const body = await answer.text();
      keep(`the answer to ${where}`, `${answer.status} ${JSON.stringify(headers)}\n${body}`);
      return body;
    },
    async end(service, signal) {
      keep("the process list of a service that ran", readFileSync(`/proc/${service.process.pid}/cmdline`));
      service.process.kill(signal);
      const [out] = await Promise.all([new Response(service.process.stdout).text(), service.process.exited]);
      keep(`what a service wrote until ${signal}`, out + service.log());
    },
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

function filesIn(directory: string): string[] {
  const paths = readdirSync(directory, { recursive: true, encoding: "utf8" });
  return paths.filter((path) => statSync(join(directory, path)).isFile());
}
