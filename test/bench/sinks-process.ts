import { join } from "node:path";
import type { ClickChannel } from "../../events/channel.ts";
import { startServer, type Server } from "./server.ts";

/** Settings of the service that direct all networks to one address. */
export function networkSettings(url: string) {
  return {
    META_PIXEL_ID: "1",
    META_ACCESS_TOKEN: "token",
    META_API_URL: url,
    CHAT_WEBHOOK_URL: `${url}/slack/webhook`,
    // The longest delay, because a digest would reduce the work.
    CHAT_DIGEST_AFTER_SECONDS: "3600",
    TELEGRAM_BOT_TOKEN: "1:token",
    TELEGRAM_CHAT_ID: "1",
    TELEGRAM_API_URL: url,
  };
}

/** Number of clicks that each channel received. */
export type Counts = Readonly<Record<ClickChannel, number>>;

/** Figures that the sinks report. */
interface Told {
  readonly counts: Counts;
  readonly p99Ms: number;
}

export interface Sinks extends AsyncDisposable {
  readonly url: string;
  /** Resets all counts. */
  reset(): Promise<void>;
  /** Holds all requests back until `release`. */
  hold(): Promise<void>;
  release(): Promise<void>;
  /** Resolves with the counts when each channel has received `clicks` clicks. */
  reached(clicks: number): Promise<Counts>;
  /** For the stamped clicks since the reset: time from their sending to the third channel's receipt. */
  p99Ms(): Promise<number>;
}

/** Starts the sinks, which delay each answer by `delayMs`. */
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

/** Clicks that have not arrived by then are lost: a backlog takes a minute at most. */
const WAIT_MS_MAX = 300_000;
