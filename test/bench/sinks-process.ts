import { join } from "node:path";
import type { ClickChannel } from "../../events/channel.ts";
import { startServer, type Server } from "./server.ts";

/** The networks of the service, all of them at one address. */
export function networkSettings(url: string) {
  return {
    META_PIXEL_ID: "1",
    META_ACCESS_TOKEN: "token",
    META_API_URL: url,
    CHAT_WEBHOOK_URL: `${url}/slack/webhook`,
    // The longest there is: a digest would shorten the work.
    CHAT_DIGEST_AFTER_SECONDS: "3600",
    TELEGRAM_BOT_TOKEN: "1:token",
    TELEGRAM_CHAT_ID: "1",
    TELEGRAM_API_URL: url,
  };
}

/** Clicks that each channel was told of. */
export type Counts = Readonly<Record<ClickChannel, number>>;

/** What the sinks say of themselves. */
interface Told {
  readonly counts: Counts;
  readonly p99Ms: number;
}

export interface Sinks extends AsyncDisposable {
  readonly url: string;
  /** Counts from nothing. */
  reset(): Promise<void>;
  /** Lets all requests wait. */
  hold(): Promise<void>;
  release(): Promise<void>;
  /** Resolves when each channel was told of so many clicks; then the counts. */
  reached(clicks: number): Promise<Counts>;
  /** Of the stamped clicks since the reset: from their sending to the third channel that was told. */
  p99Ms(): Promise<number>;
}

/** `delayMs` until each answer. */
export async function startSinks(directory: string, delayMs = 0): Promise<Sinks> {
  const command = [process.execPath, join(import.meta.dirname, "sinks.ts"), String(delayMs)];
  const server: Server = await startServer(command, directory, {});
  const ask = async (command: string): Promise<Told> => {
    const answer = await fetch(`${server.url}/control/${command}`, { signal: AbortSignal.timeout(WAIT_MS_MAX) });
    return (await answer.json()) as Told;
  };
  return {
    url: server.url,
    reset: async () => void (await ask("reset")),
    hold: async () => void (await ask("hold")),
    release: async () => void (await ask("release")),
    reached: async (clicks) => (await ask(`reached?clicks=${clicks}`)).counts,
    p99Ms: async () => (await ask("told")).p99Ms,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** Whatever has not arrived by then was lost: a backlog takes a minute at the most. */
const WAIT_MS_MAX = 300_000;
