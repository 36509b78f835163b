import { exported, openInstallation, type Running, type Installation } from "../../harness/process.ts";
import type { WireAnswer } from "../wire/parse-http-answers.ts";
import { requestBytes, type Sent } from "../wire/raw-request-bytes.ts";
import { openConnection, type Connection } from "../wire/connection.ts";

/** All answers that the service sent on one connection. */
export interface Heard {
  /** Status of the first answer; 0 if the service closed the connection without one. */
  readonly status: number;
  readonly answers: readonly WireAnswer[];
}

export interface RecordedRequest {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * Types of the events by which the service records that it accepted a request. Events about deliveries are not among
 * them.
 */
const CAUSED: ReadonlySet<string> = new Set([
  "LinkClicked",
  "NotificationRequested",
  "MessageRequested",
  "ChannelTestRequested",
  "RunStarted",
]);

/** A real service process under attack. All its paths require a token, except health and the OAuth authorization. */
export interface Target extends AsyncDisposable {
  readonly world: Installation;
  readonly service: Running;
  readonly url: string;
  /** All answers of this service so far. An attack searches them for leaks. */
  readonly heard: WireAnswer[];
  /** Returns a loopback address from which the service got no request yet, so that no limit for a caller applies. */
  stranger(): string;
  open(from?: string): Promise<Connection>;
  /** Sends bytes unchanged and waits until an answer arrives or the service closes the connection. */
  send(bytes: string | Uint8Array, from?: string): Promise<Heard>;
  ask(sent: Sent, from?: string): Promise<Heard>;
  /**
   * Returns the events by which the service recorded HTTP requests that it accepted (clicks, direct sends, channel
   * tests, runs) since the last call of this function. Events about their deliveries are left out.
   */
  recorded(): Promise<readonly RecordedRequest[]>;
}

export async function openTarget(more: Record<string, string> = {}): Promise<Target> {
  const world = await openInstallation();
  const service = await world.serve({ AUTH_POLICY: "strict", X_ACCOUNT: "acme_team", ...more });
  const { url } = service;
  const heard: WireAnswer[] = [];
  let strangers = 0;
  let looked = 0;
  const target: Target = {
    world,
    service,
    url,
    heard,
    stranger() {
      strangers += 1;
      return `127.77.${strangers >> 8}.${strangers & 255}`;
    },
    open: (from) => openConnection(url, from),
    async send(bytes, from) {
      using connection = await openConnection(url, from);
      await connection.write(bytes);
      const answers = await connection.answered(1);
      heard.push(...answers);
      return { status: answers[0]?.status ?? 0, answers };
    },
    ask: (sent, from) => target.send(requestBytes(url, sent), from),
    async recorded() {
      const events = await exported(world);
      const fresh = events.filter(({ position, type }) => position > looked && CAUSED.has(type));
      looked = events.at(-1)?.position ?? looked;
      return fresh;
    },
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
    },
  };
  return target;
}

/** Returns the name of the problem in the first answer; undefined if that answer is not a problem. */
export function slugOf({ answers: [answer] }: Heard): string | undefined {
  if (answer?.headers.get("content-type")?.[0] !== "application/problem+json") return undefined;
  return (JSON.parse(answer.body) as { type: string }).type.replace("urn:reachlog:problem:", "");
}
