import { onRuntime } from "./runtime.ts";

/** A word of a shell. */
export const quoted = (word: string): string => `'${word}'`;

const PROGRAM = onRuntime([]).map(quoted).join(" ");

/** A demo as a process of its own, and shells beside it. */
export interface Demo extends AsyncDisposable {
  /** What it printed once it was ready. */
  readonly printed: string;
  /** Its lines on stderr so far. */
  said(): string;
  readonly url: string;
  /** Ends it by the signal. Resolves with its exit code once it has ended. */
  end(signal: NodeJS.Signals): Promise<number>;
  /** Runs a line as another terminal would; `until`: ends it once its output matches. */
  shell(line: string, until?: RegExp): Promise<{ code: number | null; out: string; err: string }>;
}

/**
 * Starts the demo on free ports, with its files in `directory` unless the arguments say otherwise; `module`: from source,
 * where a binary lacks what the arguments want.
 */
export async function startDemo(
  directory: string,
  args: readonly string[] = ["--keep", directory],
  of: { readonly module?: string } = {},
): Promise<Demo> {
  const env = { PATH: process.env["PATH"] ?? "", TMPDIR: directory };
  const options = { cwd: directory, env } as const;
  const child = Bun.spawn(onRuntime(["demo", "--port", "0", "--sandbox-port", "0", ...args], of), {
    ...options,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  void (async () => {
    for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
      said += chunk;
      process.stderr.write(chunk);
    }
  })();
  const printed = await readUntil(child.stdout, /Stop with Ctrl-C\./);
  return {
    printed,
    said: () => said,
    url: /^reachlog +(\S+)/m.exec(printed)?.[1] ?? "",
    end(signal) {
      child.kill(signal);
      return child.exited;
    },
    async shell(line, until) {
      // `exec`: a signal reaches the command itself.
      const command = line.replace(/(?:bun )?reachlog /, `exec ${PROGRAM} `);
      const beside = Bun.spawn(["sh", "-c", command], { ...options, stdio: ["ignore", "pipe", "pipe"] });
      const err = new Response(beside.stderr).text();
      const out = await readUntil(beside.stdout, until);
      if (until !== undefined) beside.kill("SIGINT");
      return { code: await beside.exited, out, err: await err };
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

/** All that comes, or what came until it matched. */
export async function readUntil(stream: ReadableStream<Uint8Array>, wanted?: RegExp): Promise<string> {
  let text = "";
  for await (const chunk of (stream as ReadableStream<BufferSource>).pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (wanted?.test(text) === true) break;
  }
  return text;
}
