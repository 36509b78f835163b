import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { audit } from "../../src/commands/audit.ts";
import { runCommandLine } from "../../src/commands/shared/root-command.ts";
import type { Terminal } from "../../src/commands/shared/terminal-answers-and-exit-codes.ts";
import { startSandbox, type Sandbox, type SandboxOptions } from "../../sandbox/sandbox.ts";
import { settingsOf } from "../../sandbox/service-settings.ts";
import { capture, captureCommandLine, type Captured } from "./capture-command.ts";
import { onRuntime, RUNTIME, RUNTIME_ENV } from "./bun-deno-or-binary.ts";

/** API token of the test's caller `tester`. */
export const TOKEN = "process-test-token-0123456789";
export const BEARER = { authorization: `Bearer ${TOKEN}` };

/**
 * A folder and a sandbox for a test, in which the service can run as a real process, again and again on the same log.
 */
export interface Installation extends AsyncDisposable {
  readonly directory: string;
  readonly sandbox: Sandbox;
  readonly env: Record<string, string>;
  /**
   * Starts one command of reachlog, with flags for its runtime. The process is killed when the installation ends, at
   * the latest.
   */
  start(args: readonly string[], more?: Record<string, string>, flags?: readonly string[]): Running["process"];
  /** Starts `reachlog serve` as a process and waits until it listens. */
  serve(more?: Record<string, string>, flags?: readonly string[]): Promise<Running>;
  /**
   * Runs `reachlog serve` in this process, which takes a fifth of the processor time of a process, and waits until it
   * listens. The service ends with the installation, at the latest. On Deno it is a process.
   */
  host(more?: Record<string, string>, args?: readonly string[]): Promise<ListeningService>;
  /**
   * Runs one command of reachlog to its end in this process, which takes a tenth of the processor time of a process.
   * Paths must be absolute. On Deno, whose tests are about the runtime, the command is a process.
   */
  command(...args: string[]): Promise<Captured>;
  /** Like `command`, with further settings. */
  commandWith(more: Record<string, string>, ...args: string[]): Promise<Captured>;
  /** Runs one command of reachlog to its end as a process. */
  execute(...args: string[]): Promise<Captured>;
  /** Writes a file into the installation's folder and returns its path. */
  file(name: string, content: string | Uint8Array): string;
}

/** A service that listens. */
export interface ListeningService {
  readonly url: string;
  /** Returns the service's stderr so far. */
  log(): string;
  get(path: string, init?: RequestInit): Promise<Response>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  /** Stops the service in an orderly way. Returns the exit code. */
  end(): Promise<number>;
}

/** A service that runs and listens as a separate process. */
export interface Running extends ListeningService {
  readonly process: Bun.Subprocess<"ignore", "pipe", "pipe">;
}

export async function openInstallation(sandboxOptions: Partial<SandboxOptions> = {}): Promise<Installation> {
  const directory = mkdtempSync(join(tmpdir(), "reachlog-process-"));
  const sandbox = await startSandbox({ port: 0, ...sandboxOptions });
  const children = new Set<Bun.Subprocess>();
  const hosted = new Set<ListeningService>();
  const env = {
    PATH: process.env["PATH"] ?? "",
    ...RUNTIME_ENV,
    ...settingsOf(sandbox),
    PORT: "0",
    DATABASE_URL: `sqlite:${join(directory, "reachlog.sqlite")}`,
    API_TOKENS: `tester:${TOKEN}`,
    MESSAGE_TEMPLATE: "Hi {{name|there}}: https://go.example/welcome",
    SEND_SPACING_SECONDS: "0",
    IN_DOUBT_SETTLE_SECONDS: "1",
  };
  const start: Installation["start"] = (args, more = {}, flags = []) => {
    const child = Bun.spawn(onRuntime(args, { flags }), {
      // The process runs in a folder without a .env file, so that the developer's own settings have no effect.
      cwd: directory,
      env: { ...env, ...more },
      stdio: ["ignore", "pipe", "pipe"],
    });
    children.add(child);
    void child.exited.then(() => children.delete(child));
    return child;
  };
  const commandWith: Installation["commandWith"] = (more, ...args) =>
    RUNTIME === "deno" ? ended(start(args, more)) : captureCommandLine(args, { ...env, ...more });
  return {
    directory,
    sandbox,
    env,
    start,
    serve: (more, flags) => untilListening(start(["serve"], more, flags)),
    async host(more = {}, args = []) {
      if (RUNTIME === "deno") return untilListening(start(["serve", ...args], more));
      const service = await hostService({ ...env, ...more }, args);
      hosted.add(service);
      return service;
    },
    command: (...args) => commandWith({}, ...args),
    commandWith,
    execute: (...args) => ended(start(args)),
    file(name, content) {
      const path = join(directory, name);
      writeFileSync(path, content);
      return path;
    },
    async [Symbol.asyncDispose]() {
      for (const child of children) child.kill("SIGKILL");
      await Promise.all([...children].map((child) => child.exited));
      await Promise.allSettled(Array.from(hosted, stop));
      await sandbox[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Returns a process's output once it has ended. */
export async function ended({ stdout, stderr, exited }: Running["process"]): Promise<Captured> {
  const [out, err, code] = await Promise.all([new Response(stdout).text(), new Response(stderr).text(), exited]);
  return { code, out, err };
}

/** Stops a service in an orderly way. Returns the exit code. */
export async function stop({ end }: Pick<ListeningService, "end">): Promise<number> {
  return end();
}

/** Kills a service in the middle of its work. */
export async function kill({ process }: Pick<Running, "process">): Promise<void> {
  process.kill("SIGKILL");
  await process.exited;
}

/** The line by which a service says that it listens. */
const LISTENING = /"message":"listening","url":"([^"]+)"/;

/** Resolves once the service listens. Rejects with its stderr if it ends earlier. */
export async function untilListening(child: Running["process"]): Promise<Running> {
  let seen = "";
  const listening = Promise.withResolvers<string>();
  void (async () => {
    for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
      seen += chunk;
      const url = LISTENING.exec(seen)?.[1];
      if (url !== undefined) listening.resolve(url);
    }
    listening.reject(new Error(`the service ended: ${seen}`));
  })();
  const end = (): Promise<number> => {
    child.kill("SIGTERM");
    return child.exited;
  };
  return { ...reachable(await listening.promise), process: child, log: () => seen, end };
}

/** Runs a service in this process. Resolves once it listens. Rejects with its stderr if it ends earlier. */
async function hostService(env: Terminal["env"], args: readonly string[]): Promise<ListeningService> {
  let seen = "";
  const listening = Promise.withResolvers<string>();
  const stopping = new AbortController();
  const err = (text: string): void => {
    seen += text;
    const url = LISTENING.exec(text)?.[1];
    if (url !== undefined) listening.resolve(url);
  };
  const terminal = { env, out() {}, err, interactive: false, signal: stopping.signal };
  const exited = runCommandLine(["serve", ...args], terminal);
  exited.then((code) => listening.reject(new Error(`the service ended with ${code}: ${seen}`)), listening.reject);
  const end = (): Promise<number> => {
    stopping.abort();
    return exited;
  };
  return { ...reachable(await listening.promise), log: () => seen, end };
}

function reachable(url: string): Pick<ListeningService, "url" | "get" | "post"> {
  return {
    url,
    get: (path, init) => fetch(url + path, { redirect: "manual", ...init }),
    post: (path, body, headers = {}) =>
      fetch(url + path, {
        method: "POST",
        headers: body === undefined ? headers : { "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
  };
}

/** Authorizes on the sandbox's consent page as a browser does. `account`: the account that authorizes. */
export async function authorize(
  service: Pick<ListeningService, "get">,
  sandbox: Sandbox,
  account = "acme_team",
  decision = "authorize",
): Promise<{ callback: string; cookie: string; answer: Response }> {
  const start = await service.get("/social/auth");
  const cookie = (start.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const consent = new URL(start.headers.get("location") ?? "");
  const person = [...sandbox.x.people.values()].find(({ username }) => username === account);
  const form = new URLSearchParams(consent.search);
  form.set("account", person?.id ?? "");
  form.set("decision", decision);
  const decided = await fetch(consent.origin + consent.pathname, { method: "POST", body: form, redirect: "manual" });
  const callback = new URL(decided.headers.get("location") ?? "");
  const answer = await service.get(callback.pathname + callback.search, {
    headers: { cookie, accept: "application/json" },
  });
  return { callback: callback.pathname + callback.search, cookie, answer };
}

/**
 * Maximum number of calls by {@link until}. Together they take minutes, and an expected change takes seconds. The
 * number is limited and not the time, because a busy machine answers slowly.
 */
const ASKED_MAX = 600;

/** Minimum pause between two calls of `ask`, in ms. */
const PAUSE_MS_MIN = 20;

/**
 * Pause between two calls of `ask`, as a multiple of the time that the last call took. Otherwise a test whose `ask`
 * exports the whole log would use up the processor while waiting.
 */
const PAUSE_SHARE = 2;

/**
 * Pause between two calls as a share of the time waited so far. A long wait then needs few calls, and lasts at most a
 * tenth too long.
 */
const WAITED_SHARE = 1 / 10;

/** Maximum pause for a long wait, in ms. */
const PAUSE_MS_MAX = 1_000;

/**
 * Repeats `ask` until `wanted` accepts the answer, for changes that no event of ours announces. `msMax` is a time limit
 * for tests that check how long something takes.
 */
export async function until<T>(ask: () => Promise<T>, wanted: (answer: T) => boolean, msMax = Infinity): Promise<T> {
  const startedAt = performance.now();
  for (let asked = 1; ; asked++) {
    const askedAt = performance.now();
    const answer = await ask();
    if (wanted(answer)) return answer;
    const now = performance.now();
    if (asked >= ASKED_MAX || now - startedAt > msMax)
      throw new Error(`not in ${asked} questions and ${(now - startedAt).toFixed()} ms: ${JSON.stringify(answer)}`);
    const pauseMs = Math.min(PAUSE_MS_MAX, WAITED_SHARE * (now - startedAt));
    await Bun.sleep(Math.max(PAUSE_MS_MIN, pauseMs, PAUSE_SHARE * (now - askedAt)));
  }
}

/** Returns all events in the log, as the export writes them. The export runs in this process, not in the service. */
export async function exported(world: Installation): Promise<
  {
    position: number;
    id: string;
    type: string;
    hash: string;
    data: Record<string, unknown>;
    meta: Record<string, unknown>;
  }[]
> {
  const { out, code, err } = await capture(audit, ["export"], { env: world.env });
  if (code !== 0) throw new Error(`the export failed: ${err}`);
  return out
    .trim()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}
