import { exported, openInstallation, type Running, type Installation } from "../../harness/process.ts";
import type { WireAnswer } from "../wire/answers.ts";
import { requestBytes, type Sent } from "../wire/bytes.ts";
import { openConnection, type Connection } from "../wire/connection.ts";

/** What came back on a connection of its own. */
export interface Heard {
  /** Of the first answer; 0: it was hung up without one. */
  readonly status: number;
  readonly answers: readonly WireAnswer[];
}

export interface RecordedRequest {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The events that a request causes at once. */
const CAUSED: ReadonlySet<string> = new Set([
  "LinkClicked",
  "NotificationRequested",
  "MessageRequested",
  "ChannelTestRequested",
  "RunStarted",
]);

/** A real service under attack. All but health and the way of authorization wants a token. */
export interface Target extends AsyncDisposable {
  readonly world: Installation;
  readonly service: Running;
  readonly url: string;
  /** All that was ever answered, for a look for what must not be in it. */
  readonly heard: WireAnswer[];
  /** An address from which no call has come yet. */
  stranger(): string;
  open(from?: string): Promise<Connection>;
  /** Sends bytes as they are, and listens until an answer comes or the service hangs up. */
  send(bytes: string | Uint8Array, from?: string): Promise<Heard>;
  ask(sent: Sent, from?: string): Promise<Heard>;
  /** What requests got recorded since this was asked last, by type; not its outcomes. */
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

/** The slug of a problem; undefined for any other answer. */
export function slugOf({ answers: [answer] }: Heard): string | undefined {
  if (answer?.headers.get("content-type")?.[0] !== "application/problem+json") return undefined;
  return (JSON.parse(answer.body) as { type: string }).type.replace("urn:reachlog:problem:", "");
}
