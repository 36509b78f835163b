import { CHANNELS, type ChannelName, type Lane } from "../../events/channel.ts";
import type { Dice, Step } from "./history.ts";
import type { TestLog } from "../harness/memory/events.ts";

/** One dispatch, as the service that made this history knew it. */
export interface Owed {
  readonly channel: ChannelName;
  readonly lane: Lane;
  readonly position: number;
  readonly event_id: string;
  readonly source: number;
  attempts: number;
  /** It failed and waits for its next attempt. */
  waits: boolean;
  end: "dispatched" | "skipped" | "in_doubt" | "dead" | undefined;
}

const CHOICES: readonly (readonly ChannelName[])[] = [CHANNELS, ["ads"], ["chat", "messaging"], [], ["messaging"]];

/** The dispatches of all channels, as a dispatcher with a window over each lane would make them. */
export function createDeliveryPart(log: TestLog): { readonly steps: readonly Step[]; readonly owed: Owed[] } {
  const owed: Owed[] = [];
  const letters: Owed[] = [];

  const owe = (channels: readonly ChannelName[], lane: Lane, position: number, of?: Owed): void => {
    const event_id = of?.event_id ?? log.events[position - 1]?.id ?? "";
    const source = of?.source ?? position;
    for (const channel of channels) {
      owed.push({ channel, lane, position, event_id, source, attempts: 0, waits: false, end: undefined });
    }
  };

  const click: Step = (dice) => {
    const channels = dice.pick(CHOICES);
    const short_code = dice.pick(["a", "b", "c"]);
    const link = { event: "click", domain: "go.example", short_code, original_url: "https://example.com" };
    owe(channels, "clicks", log.add("LinkClicked", { ...link, bot: dice.once(3), channels: [...channels] }));
  };
  const attempt: Step = (dice) => {
    const pending = owed.filter(({ end }) => end === undefined);
    if (pending.length === 0) return click(dice);
    // Near the front, as within a window.
    const item = dice.pick(pending.slice(0, 6));
    const account = lowWatermark(owed, item, log.events.length + 1);
    const low_watermark = dice.once(4) ? Math.min(account, item.position) : account;
    tell(log, dice, { item, low_watermark, letters });
  };
  const repeat: Step = (dice) => {
    const ended = owed.filter(({ end }) => end !== undefined);
    if (ended.length === 0) return;
    const item = dice.pick(ended);
    // A second process, or a start after a crash, told an outcome that the log has already.
    tell(log, dice, { item: { ...item, end: undefined }, low_watermark: Math.min(item.position, 1), letters: [] });
  };

  const steps: Step[] = [
    click,
    click,
    click,
    attempt,
    attempt,
    attempt,
    attempt,
    repeat,
    () => owe(["chat"], "direct", log.add("NotificationRequested", { message: "m", service: "s", level: "info" })),
    () => owe(["messaging"], "direct", log.add("MessageRequested", { text: "t" })),
    (dice) => {
      const channels = dice.pick(CHOICES);
      owe(channels, "direct", log.add("ChannelTestRequested", { channels: [...channels] }));
    },
    () => {
      const letter = letters.shift();
      if (letter === undefined) return;
      const { channel, event_id, source } = letter;
      owe([channel], "direct", log.add("DispatchRetryRequested", { event_id, source, channel }), letter);
    },
    () => {
      const letter = letters.shift();
      if (letter === undefined) return;
      const { channel, event_id, source } = letter;
      log.add("DispatchDiscarded", { event_id, source, channel, why: "over" });
    },
    (dice) => {
      const refused = { channel: dice.pick(CHANNELS), network: "n", detail: "gone" };
      log.add("ChannelSuspended", { ...refused, credential: dice.pick(["one", "other"]) });
    },
    (dice) => log.add("ChannelResumed", { channel: dice.pick(CHANNELS), why: dice.pick(["by_hand", "delivered"]) }),
  ];
  return { steps, owed };
}

interface Told {
  readonly item: Owed;
  readonly low_watermark: number;
  /** Takes the item when it is given up. */
  readonly letters: Owed[];
}

function tell(log: TestLog, dice: Dice, { item, low_watermark, letters }: Told): void {
  const { channel, lane, position, event_id } = item;
  const base = { event_id, owed: position, channel, lane, attempt: ++item.attempts, low_watermark };
  item.waits = false;
  switch (dice.pick(["dispatched", "dispatched", "failed", "skipped", "doubt", "dead"] as const)) {
    case "dispatched":
      item.end = "dispatched";
      log.add("DispatchSucceeded", { ...base, status: 200, latency_ms: 12 });
      return;
    case "failed":
      item.waits = true;
      log.add("DispatchFailed", { ...base, detail: "503", retry_at: "2026-11-20T11:00:00.000Z" });
      return;
    case "skipped":
      item.end = "skipped";
      log.add("DispatchSkipped", { ...base, reason: "too_old" });
      return;
    case "doubt":
      item.end = "in_doubt";
      log.add("DispatchInDoubt", { ...base, detail: "time-out" });
      return;
    case "dead":
      item.end = "dead";
      letters.push(item);
      log.add("DispatchAbandoned", { ...base, detail: "400", refused: true });
  }
}

/** The dispatcher's account: the oldest other one that the log does not tell of; the end of the log without one. */
function lowWatermark(owed: readonly Owed[], item: Owed, end: number): number {
  const others = owed.filter(
    (other) => other !== item && other.channel === item.channel && other.lane === item.lane && other.end === undefined,
  );
  return others.find(({ waits }) => !waits)?.position ?? end;
}
