import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import {
  createSafeFetch,
  type NetworkAnswer,
  type SafeFetch,
  type SafeRequest,
  NetworkFault,
  type NetworkFaultKind,
} from "../../src/networks/safe-fetch.ts";
import { denoProgram } from "../harness/bun-deno-or-binary.ts";
import { residentMiB } from "../http/wire/process-memory.ts";

/** The service's network client on one runtime, Bun or Deno. */
export interface Client extends AsyncDisposable {
  /** Creates the function that calls networks. `ca` contains trusted certificates in PEM. */
  safeFetch(allowedOrigins: readonly string[], ca?: string): SafeFetch;
  /** Resident memory of the client's process. */
  residentMiB(): number;
}

/** A client in this process. */
export function openBunClient(): Client {
  return {
    safeFetch: (allowedOrigins, ca) =>
      createSafeFetch({
        allowedOrigins,
        fetch: (url, init) => fetch(url, { ...init, ...(ca === undefined ? {} : { tls: { ca } }) }),
      }),
    residentMiB: () => residentMiB({ process }),
    async [Symbol.asyncDispose]() {},
  };
}

/** Message to the program on Deno: a call that it makes, or the number of a call that it aborts. */
export type Asked = { readonly abort: number } | Call;

interface Call extends Omit<SafeRequest, "signal" | "headers"> {
  readonly id: number;
  readonly url: string;
  readonly allowedOrigins: readonly string[];
  readonly ca: string | undefined;
  readonly headers: Record<string, string> | undefined;
}

/** Message with the outcome of a call; `shown` is a debugger's view of the fault. */
export type Ended = { readonly id: number } & (
  | { readonly answer: Omit<NetworkAnswer, "headers"> & { readonly headers: [string, string][] } }
  | { readonly fault: { readonly kind: NetworkFaultKind; readonly certainlyNotSent: boolean; readonly shown: string } }
);

const PROGRAM = join(import.meta.dirname, "programs/make-calls.ts");

/** A client in a process on Deno. */
function openDenoClient(): Client {
  const child = Bun.spawn([denoProgram(), "run", "--allow-all", PROGRAM], { stdio: ["pipe", "pipe", "inherit"] });
  const waiting = new Map<number, (ended: Ended) => void>();
  const lines = createInterface({ input: Readable.from(child.stdout) });
  lines.on("line", (line) => {
    const ended = JSON.parse(line) as Ended;
    waiting.get(ended.id)?.(ended);
    waiting.delete(ended.id);
  });
  let calls = 0;
  const ask = (asked: Asked): void => {
    void child.stdin.write(`${JSON.stringify(asked)}\n`);
    void child.stdin.flush();
  };
  return {
    safeFetch:
      (allowedOrigins, ca) =>
      async (url, { signal, headers, ...request }) => {
        const id = (calls += 1);
        const ended = new Promise<Ended>((resolve) => waiting.set(id, resolve));
        ask({
          id,
          url,
          allowedOrigins,
          ca,
          headers: headers && Object.fromEntries(Object.entries(headers)),
          ...request,
        });
        signal?.addEventListener("abort", () => ask({ abort: id }));
        if (signal?.aborted === true) ask({ abort: id });
        return answerOf(await ended);
      },
    residentMiB: () => residentMiB({ process: child }),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

/**
 * Returns the answer that the client's process got. If the call failed, throws its error, with the text that `inspect`
 * gives for the error in that process as `shown`.
 */
function answerOf(ended: Ended): NetworkAnswer {
  if ("answer" in ended) return { ...ended.answer, headers: new Headers(ended.answer.headers) };
  const { kind, certainlyNotSent, shown } = ended.fault;
  throw Object.assign(new NetworkFault(kind, certainlyNotSent), { shown });
}

export const CLIENTS: readonly (readonly ["Bun" | "Deno", () => Client])[] = [
  ["Bun", openBunClient],
  ["Deno", openDenoClient],
];
