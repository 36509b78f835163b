import type { ChannelName } from "../../../events/channel.ts";
import { secret } from "../../../src/platform/secret.ts";
import type { Channel, Click, Dispatch, DispatchResult } from "../../../src/networks/network.ts";
import type { FakeTime } from "../../harness/memory/fake-time.ts";
import { keyOf } from "./watch.ts";
import { drawFate, WELL, type Fate, type Kind } from "./fates.ts";

/** One life of the service. Once it is killed, nothing of it reaches the network or the log. */
export interface Life {
  killed: boolean;
  /** The channels of which the log refused an append, so that it may end with something of theirs unrecorded, too. */
  readonly refused: Set<ChannelName>;
  /** It waits for what it asked, and so is answered at once. */
  ending: boolean;
  /** The log was read that it begins with; undefined: it was, and no read waits for that. */
  beginning: Promise<void> | undefined;
}

/** One request as the network saw it. */
export interface Request {
  readonly life: Life;
  readonly mode: "click" | "digest" | "batch" | "text";
  /** What each key of it came to, which the service learns at `answeredAt`; ms since the epoch. */
  readonly results: ReadonlyMap<string, DispatchResult>;
  answeredAt?: number;
}

/** A network that lives longer than the service, and knows the truth. */
export interface Network {
  channel(life: Life, credential: string): Channel;
  /** How often each key arrived. */
  readonly taken: ReadonlyMap<string, number>;
  readonly inFlightMax: number;
  /** What is awaited is answered at once. */
  release(): void;
  /** From now on everything goes well, too. */
  heal(): void;
}

/** The network knows an id for a while longer than the service counts on. */
const KNOWN_BEYOND_MS = 20 * 60_000;

/** Each click has a link of its own and each text its words, so that a digest shows which clicks are in it. */
function keysOf(dispatch: Dispatch): readonly string[] {
  if (dispatch.kind === "click") return [dispatch.shortCode];
  if (dispatch.kind === "digest") return dispatch.links.map(({ shortCode }) => shortCode);
  if (dispatch.kind === "message") return [dispatch.text];
  if (dispatch.kind === "event") return [keyOf(dispatch.event) ?? dispatch.id];
  return dispatch.kind === "notification" ? [dispatch.message] : [dispatch.id];
}

/** What waits while the channel is suspended is no text. */
const MODES: Partial<Record<Dispatch["kind"], Request["mode"]>> = { click: "click", event: "click", digest: "digest" };

export function createNetwork(
  name: ChannelName,
  { recognisesMs, batch, isInOrder = false }: Kind,
  time: FakeTime,
  random: () => number,
  onRequest: (request: Request) => void,
): Network {
  const taken = new Map<string, number>();
  const seen = new Map<string, number>();
  const awaited = new Set<() => void>();
  let isWell = false;
  let inFlight = 0;
  let inFlightMax = 0;

  const fateOf = (known: boolean): Fate => (isWell ? WELL : drawFate(random, known));

  const arrive = (id: string, keys: readonly string[]): void => {
    const since = seen.get(id);
    if (recognisesMs !== undefined && since !== undefined && time.clock() - since < recognisesMs + KNOWN_BEYOND_MS) {
      return;
    }
    seen.set(id, time.clock());
    for (const key of keys) taken.set(key, (taken.get(key) ?? 0) + 1);
  };

  const answer = async (request: Request, ms: number): Promise<void> => {
    onRequest(request);
    inFlightMax = Math.max(inFlightMax, ++inFlight);
    if (ms > 0 && !isWell && !request.life.ending) {
      const { promise, resolve } = Promise.withResolvers<void>();
      awaited.add(resolve);
      const cancel = time.timer(resolve, ms);
      await promise;
      cancel();
      awaited.delete(resolve);
    }
    inFlight--;
    request.answeredAt = time.clock();
  };

  const send = async (life: Life, dispatch: Dispatch): Promise<DispatchResult> => {
    if (life.killed) return { outcome: "retryable", detail: "killed", unasked: true };
    const keys = keysOf(dispatch);
    const fate = fateOf(recognisesMs !== undefined && dispatch.kind !== "digest");
    if (fate.arrives) arrive(dispatch.id, keys);
    const mode = MODES[dispatch.kind] ?? "text";
    await answer({ life, mode, results: new Map(keys.map((key) => [key, fate.result])) }, fate.takesMs);
    if (fate.throws === true) throw new Error("a defect");
    return fate.result;
  };

  const sendBatch = async (life: Life, clicks: readonly Click[]): Promise<readonly DispatchResult[]> => {
    const unasked: DispatchResult = { outcome: "retryable", detail: "not asked", unasked: true };
    if (life.killed) return clicks.map(() => unasked);
    // Some batches end early, and in some all have the same fate.
    const asked = clicks.slice(0, random() < 0.2 ? 1 + Math.floor(random() * clicks.length) : clicks.length);
    const together = random() < 0.5 ? fateOf(true) : undefined;
    const fates = asked.map(() => together ?? fateOf(true));
    for (const [at, click] of asked.entries()) if (fates[at]?.arrives === true) arrive(click.id, [click.shortCode]);
    const results = new Map(asked.map(({ shortCode }, at) => [shortCode, fates[at]?.result ?? unasked]));
    await answer({ life, mode: "batch", results }, Math.max(0, ...fates.map(({ takesMs }) => takesMs)));
    return clicks.map((_click, at) => fates[at]?.result ?? unasked);
  };

  const release = (): void => {
    for (const resolve of awaited) resolve();
  };

  return {
    taken,
    get inFlightMax() {
      return inFlightMax;
    },
    release,
    heal() {
      isWell = true;
      release();
    },
    channel: (life, credential) => ({
      name,
      network: "model",
      credential: secret(credential),
      isInOrder,
      ...(recognisesMs === undefined ? {} : { recognisesMs }),
      ...(batch === undefined
        ? {}
        : { batch: { max: batch, send: (clicks) => begun(life, () => sendBatch(life, clicks)) } }),
      send: (dispatch) => begun(life, () => send(life, dispatch)),
      check: () => Promise.resolve({ ok: true, detail: "" }),
    }),
  };
}

function begun<T>({ beginning }: Life, call: () => Promise<T>): Promise<T> {
  return beginning === undefined ? call() : beginning.then(call);
}
