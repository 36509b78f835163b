import { join } from "node:path";
import type { ClickChannel } from "../../events/channel-and-lane-names.ts";
import { startServer, type Server } from "./start-service-process.ts";

/** Settings that turn on the channels for Meta, Slack and Telegram, and direct all their requests to one address. */
export function networkSettings(url: string) {
  return {
    META_PIXEL_ID: "1",
    META_ACCESS_TOKEN: "token",
    META_API_URL: url,
    CHAT_WEBHOOK_URL: `${url}/slack/webhook`,
    // Digests are delayed so much that none is sent: a digest would deliver many clicks by one request, which is less
    // work.
    CHAT_DIGEST_AFTER_SECONDS: "3600",
    TELEGRAM_BOT_TOKEN: "1:token",
    TELEGRAM_CHAT_ID: "1",
    TELEGRAM_API_URL: url,
  };
}

/** Number of clicks that each channel received. */
export type Counts = Readonly<Record<ClickChannel, number>>;

/** Figures that the sinks, the stand-ins for the networks, report. */
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
  /**
   * Returns the delivery time that 99 percent of the clicks since the reset did not exceed, in ms: from the sending of
   * a stamped click until the third channel has received it.
   */
  p99Ms(): Promise<number>;
}

/** Starts the sinks, stand-ins for the networks that delay each answer by `delayMs`. */
export async function startSinks(directory: string, delayMs = 0): Promise<Sinks> {
  const command = [process.execPath, join(import.meta.dirname, "network-sinks.ts"), String(delayMs)];
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

/**
 * Maximum wait in ms for clicks at the sinks. A backlog takes a minute at most, so clicks that are missing then are
 * lost.
 */
const WAIT_MS_MAX = 300_000;
