import type { ChannelName } from "../../../events/channel-and-lane-names.ts";
import { secret } from "../../../src/platform/secret.ts";
import type { Channel, Click, Dispatch, DispatchResult } from "../../../src/networks/network.ts";
import type { FakeTime } from "../../harness/in-process/fake-time.ts";
import { keyOf } from "./check-requests.ts";
import { drawFate, WELL, type Fate, type Kind } from "./network-answers.ts";

/**
 * The service from one start to its stop or kill. After a kill, nothing that it still does reaches the network or the
 * log.
 */
export interface Life {
  killed: boolean;
  /**
   * Channels on which the log refused an append. Their outcomes may be missing in the end, even if the service was not
   * killed.
   */
  readonly refused: Set<ChannelName>;
  /**
   * True while the service stops. The simulated network then answers all its requests at once, because the service
   * waits for them.
   */
  ending: boolean;
  /** Resolves once the starting service has read the log. Requests wait for that. Undefined afterwards. */
  beginning: Promise<void> | undefined;
}

/** Request as the simulated network sees it. */
export interface Request {
  readonly life: Life;
  readonly mode: "click" | "digest" | "batch" | "text";
  /**
   * Results of the clicks or texts in the request, by their keys. The service learns them at `answeredAt`, in ms since
   * the epoch.
   */
  readonly results: ReadonlyMap<string, DispatchResult>;
  answeredAt?: number;
}

/** Simulated network, which lives longer than the service and knows what really arrived. */
export interface Network {
  channel(life: Life, credential: string): Channel;
  /** Number of times that each click or text arrived, by its key. */
  readonly taken: ReadonlyMap<string, number>;
  readonly inFlightMax: number;
  /** Answers all pending requests at once. */
  release(): void;
  /** Makes all later requests succeed. */
  heal(): void;
}

/** Additional time in ms for which the simulated network recognises an id, beyond the time that the service assumes. */
const KNOWN_BEYOND_MS = 20 * 60_000;

/**
 * Returns the keys of a dispatch's clicks or texts. Each click has its own link and each text its own words, so that
 * even a digest shows which clicks it contains.
 */
function keysOf(dispatch: Dispatch): readonly string[] {
  if (dispatch.kind === "click") return [dispatch.shortCode];
  if (dispatch.kind === "digest") return dispatch.links.map(({ shortCode }) => shortCode);
  if (dispatch.kind === "message") return [dispatch.text];
  if (dispatch.kind === "event") return [keyOf(dispatch.event) ?? dispatch.id];
  return dispatch.kind === "notification" ? [dispatch.message] : [dispatch.id];
}

/**
 * Kinds of dispatches that wait while the channel is suspended, with the mode of their requests. All other kinds count
 * as texts.
 */
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
    // In a fifth of the batches only the first clicks get an answer. In half of them all clicks get the same one.
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
        : { batch: { max: batch, send: (clicks) => begun(life, () => sendBatch(life, clicks as readonly Click[])) } }),
      send: (dispatch) => begun(life, () => send(life, dispatch)),
      check: () => Promise.resolve({ ok: true, detail: "" }),
    }),
  };
}

function begun<T>({ beginning }: Life, call: () => Promise<T>): Promise<T> {
  return beginning === undefined ? call() : beginning.then(call);
}
