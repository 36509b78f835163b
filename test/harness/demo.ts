import { onRuntime, RUNTIME_ENV } from "./bun-deno-or-binary.ts";

/** Quotes a word as an argument for a shell. */
export const quoted = (word: string): string => `'${word}'`;

const PROGRAM = onRuntime([]).map(quoted).join(" ");

/** The demo, which a test started as a process, and shells that run next to it. */
export interface Demo extends AsyncDisposable {
  /** Output of the demo until it was ready. */
  readonly printed: string;
  /** Stderr of the demo so far. */
  said(): string;
  readonly url: string;
  /** Sends the signal to the demo. Resolves with its exit code once it has ended. */
  end(signal: NodeJS.Signals): Promise<number>;
  /**
   * Runs a shell line next to the demo, as in another terminal. If `until` is given, interrupts the line as soon as its
   * output matches.
   */
  shell(line: string, until?: RegExp): Promise<{ code: number | null; out: string; err: string }>;
}

/**
 * Starts the demo on free ports, with its files in `directory` unless `args` say otherwise. `module` runs it from
 * source, for arguments that a binary does not support.
 */
export async function startDemo(
  directory: string,
  args: readonly string[] = ["--keep", directory],
  of: { readonly module?: string } = {},
): Promise<Demo> {
  const env = { PATH: process.env["PATH"] ?? "", ...RUNTIME_ENV, TMPDIR: directory };
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
      // `exec` replaces the shell by the command, so that a signal reaches the command.
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

/** Reads a stream to its end, or until the text so far matches. */
export async function readUntil(stream: ReadableStream<Uint8Array>, wanted?: RegExp): Promise<string> {
  let text = "";
  for await (const chunk of (stream as ReadableStream<BufferSource>).pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (wanted?.test(text) === true) break;
  }
  return text;
}
