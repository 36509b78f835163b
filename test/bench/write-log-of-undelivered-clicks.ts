/**
 * Program that appends clicks with a pending dispatch on each of the three channels. Arguments: FILE, number of clicks.
 */
import { openSqliteStore } from "eventstore-lite";
import { codec, makeEvent, type Event } from "../../events/event-types-and-codec.ts";
import { CLICK_CHANNELS } from "../../events/channel-and-lane-names.ts";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { STREAMS } from "../../src/log/event-log.ts";
import { CLICK } from "./sample-click.ts";

/** Number of clicks on one link that are appended in one transaction. */
const BATCH_CLICKS = 1_000;

const LINKS = 100;

const [file = "", clicks = "0"] = process.argv.slice(2);
const posted = JSON.parse(CLICK) as { domain: string };

await using store = await openSqliteStore<Event>({ file, codec });
for (let done = 0; done < Number(clicks); done += BATCH_CLICKS) {
  const data = { ...posted, event: "click", original_url: "", short_code: `post-${(done / BATCH_CLICKS) % LINKS}` };
  const events = Array.from({ length: Math.min(BATCH_CLICKS, Number(clicks) - done) }, (_, index) => {
    const original_url = `https://shop.example/products/${done + index}?utm_source=x&utm_medium=social&fbclid=IwAR0abc`;
    const click = { ...data, original_url, bot: false, channels: [...CLICK_CHANNELS] };
    return makeEvent("LinkClicked", makeId(), click, { caller: "backlog" });
  });
  await store.append(STREAMS.link(data.domain, data.short_code), events);
}
