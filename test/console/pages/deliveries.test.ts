// On the memory harness.
import { describe, expect, test } from "bun:test";
import type { ClickChannel } from "../../../events/channel.ts";
import { DISPATCHES_LISTED } from "../../../src/delivery/list-dispatches.ts";
import { STREAMS, type NewEvent } from "../../../src/log/event-log.ts";
import { disposedAfterEach } from "../../harness/dispose.ts";
import { ask, openApp, post, TOKEN, type AppHarness } from "../../harness/memory/app.ts";
import { outcomeOf } from "../../harness/memory/outcomes.ts";
import { clickOf } from "../../harness/memory/new-events.ts";
import { textsAt } from "../pages.ts";

const disposed = disposedAfterEach();

const NOTIFICATION: NewEvent = {
  type: "NotificationRequested",
  data: { message: "disk <full>", service: "web-1", level: "error" },
};

const click = (...channels: ClickChannel[]): NewEvent => clickOf({ channels });

const gaveUp = (source: number, channel: ClickChannel, more: object = {}): NewEvent =>
  outcomeOf("DispatchAbandoned", { source, channel, lane: "clicks", detail: "gone", refused: true, ...more });

const doubted = (source: number, channel: ClickChannel): NewEvent =>
  outcomeOf("DispatchInDoubt", { source, channel, lane: "clicks", detail: "timed out", status: 504 });

const SUSPENDED: NewEvent = {
  type: "ChannelSuspended",
  data: { channel: "chat", network: "slack", detail: "channel_is_archived", credential: "keyed-hash" },
};

const FORM = { "content-type": "application/x-www-form-urlencoded" };

/** A service and a signed-in browser that opens the page. */
async function openBrowser() {
  const harness = disposed(await openApp());
  const signedIn = await post(harness.app, "/session", `token=${TOKEN}`, { headers: FORM });
  const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  const pageAt = async (path: string, notice = ""): Promise<string> => {
    const answer = await ask(harness.app, path, { headers: { cookie: `${cookie}; ${notice}` } });
    return answer.text();
  };
  /** Submits the first form of the page with this button, with `filled` added. Returns the resulting page. */
  const press = async (path: string, button: string, filled: Record<string, string> = {}): Promise<string> =>
    send(await pageAt(path), button, filled);
  /** Submits a form of a page that was read before. */
  const send = async (page: string, button: string, filled: Record<string, string> = {}): Promise<string> => {
    const form = formsIn(page).find(({ text }) => text.includes(`<button>${button}</button>`));
    if (form === undefined) throw new Error(`there is no button ${button}`);
    const body = new URLSearchParams({ ...form.fields, ...filled }).toString();
    const answer = await post(harness.app, form.action, body, { headers: { ...FORM, cookie } });
    expect(answer.status).toBe(303);
    return pageAt(answer.headers.get("location") ?? "", answer.headers.get("set-cookie")?.split(";")[0]);
  };
  return { harness, pageAt, press, send };
}

function formsIn(page: string) {
  return [...page.matchAll(/<form class="action" method="post" action="([^"]+)">(.*?)<\/form>/gs)].map(
    ([, action = "", text = ""]) => {
      const hidden = text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g);
      return {
        action,
        text,
        fields: Object.fromEntries([...hidden].map(([, name, value]) => [name, value?.replaceAll("&amp;", "&")])),
      };
    },
  );
}

const decisions = async ({ store }: AppHarness): Promise<unknown[][]> =>
  (
    await Array.fromAsync(store.read({ types: ["DispatchRetryRequested", "DispatchDiscarded", "DispatchSettled"] }))
  ).map(({ type, data, meta }) => [type, data, meta.caller]);

describe("the page of deliveries", () => {
  test("says that nothing was given up, and of each channel how far it is", async () => {
    const { pageAt } = await openBrowser();
    const page = await pageAt("/deliveries");
    expect(page).toContain("No dead letters");
    expect(page).toContain("Nothing is in doubt.");
    expect(page.match(/Up to date/g)).toHaveLength(3);
  });

  test("shows the figures of deliveries lag, and why a channel is red or amber", async () => {
    const { harness, pageAt } = await openBrowser();
    await harness.append("link-go.example/x", click("chat", "ads"), click("chat"));
    await harness.append(STREAMS.delivery("chat"), SUSPENDED);
    const retry_at = "2027-01-01T00:00:00.000Z";
    const failed = outcomeOf("DispatchFailed", { source: 1, channel: "ads", lane: "clicks", detail: "", retry_at });
    await harness.append(STREAMS.delivery("ads"), failed);
    const page = await pageAt("/deliveries");
    expect(await textsAt(page, ".badge.bad")).toMatchObject([{ text: "Suspended" }]);
    expect((await textsAt(page, ".badge.warn"))[0]).toMatchObject({ text: "Failing" });
    expect(page).toContain("channel_is_archived");
    expect(page).toContain("the last attempt failed");
    expect(page).not.toContain("keyed-hash");
    const chat = /<th scope="row"[^>]*>chat<\/th>.*?<\/tr>/s.exec(page)?.[0] ?? "";
    const figures = [...chat.matchAll(/<td class="number"[^>]*>([^<]+)</g)].map(([, figure]) => figure);
    expect(figures).toEqual(["2", expect.stringMatching(/^\d s$/), "0", "0.4", "not while suspended"]);
    expect(await pageAt("/deliveries?channel=ads")).not.toContain('<th scope="row">chat</th>');
  });

  test("lists what was given up and what is in doubt: what it was, why, how often it was tried, and when", async () => {
    const { harness, pageAt } = await openBrowser();
    await harness.append(STREAMS.requests, NOTIFICATION, click("ads"));
    await harness.append(
      STREAMS.delivery("chat"),
      gaveUp(1, "chat", { lane: "direct", attempt: 8, refused: false, doubtful_since: "2026-03-01T08:00:00.000Z" }),
    );
    await harness.append(STREAMS.delivery("ads"), doubted(2, "ads"));
    const page = await pageAt("/deliveries");
    const [letters = "", inDoubt = ""] = page.slice(page.indexOf('id="letters"')).split('id="in-doubt"');
    expect(letters).toContain("disk &lt;full>");
    expect(letters).toMatch(
      /<b>chat<\/b>, out of attempts after 8, .*: <bdi>gone<\/bdi>; an attempt of .* may have arrived/s,
    );
    expect(inDoubt).toContain('A person clicked <a href="/links/go.example/x">');
    expect(inDoubt).toMatch(/<b>ads<\/b>, in doubt at attempt 1, .*status 504\): <bdi>timed out<\/bdi>/s);
    expect(await pageAt("/deliveries?channel=messaging")).not.toContain("timed out");
  });

  test("pages by cursor, also within what was recorded together, and shows each once", async () => {
    const { harness, pageAt } = await openBrowser();
    const count = DISPATCHES_LISTED * 2 + 3;
    await harness.append(STREAMS.requests, ...Array.from({ length: count }, () => click("chat", "ads")));
    const both = (type: "DispatchAbandoned" | "DispatchInDoubt", channel: ClickChannel): NewEvent => {
      const { data } = outcomeOf(type, { source: 1, channel, lane: "clicks", detail: "d", refused: true });
      const requests = data.requests.map((request) => ({ ...request, sources: [[1, count]] }));
      if (type === "DispatchInDoubt") for (const request of requests) delete (request as { refused?: unknown }).refused;
      return { type, data: { ...data, requests } } as unknown as NewEvent;
    };
    await harness.append(STREAMS.delivery("chat"), both("DispatchAbandoned", "chat"));
    await harness.append(STREAMS.delivery("ads"), both("DispatchInDoubt", "ads"));
    for (const [cursor, channel] of [
      ["letters_after", "chat"],
      ["in_doubt_after", "ads"],
    ] as const) {
      const seen: string[] = [];
      let path: string | undefined = "/deliveries?channel=" + channel;
      while (path !== undefined) {
        const page: string = await pageAt(path);
        seen.push(...[...page.matchAll(new RegExp(`<li id="(${channel}-\\d+)"`, "g"))].map(([, id]) => id ?? ""));
        path = new RegExp(`href="([^"]*${cursor}=[^"]*)">Older`).exec(page)?.[1]?.replaceAll("&amp;", "&");
      }
      expect(seen).toEqual(Array.from({ length: count }, (_, index) => `${channel}-${count - index}`));
    }
  });

  test("shows what the filter in its address matches, and says what is wrong with one that can match nothing", async () => {
    const { harness, pageAt } = await openBrowser();
    await harness.append(STREAMS.requests, click("chat"), click("chat", "ads"));
    await harness.append(
      STREAMS.delivery("chat"),
      gaveUp(1, "chat", { mode: "single", status: 503 }),
      gaveUp(2, "chat"),
    );
    await harness.append(STREAMS.delivery("ads"), doubted(2, "ads"));
    const shown = async (query: string) =>
      [...(await pageAt(`/deliveries?${query}`)).matchAll(/<li id="([^"]+)"/g)].map(([, id]) => id);
    expect(await shown("error=503&from=&to=")).toEqual(["chat-1"]);
    expect(await shown("error=no_request")).toEqual(["chat-2", "ads-2"]);
    expect(await shown("error=no_request&status=dead")).toEqual(["chat-2"]);
    expect(await shown("link=go.example/x&channel=ads")).toEqual(["ads-2"]);
    expect(await shown("link=other.example")).toEqual([]);
    expect(await pageAt("/deliveries?link=other.example")).toContain("None match.");
    const page = await pageAt("/deliveries?error=%3Cb%3E");
    expect(page).toMatch(/role="alert">an error is one of refused, .*, not &quot;&lt;b>&quot;\.<\/p>/);
    expect(page).toContain('name="error" value="&lt;b>"');
  });
});

describe("what a browser does about dead letters", () => {
  async function openWithLetters() {
    const browser = await openBrowser();
    const { harness } = browser;
    await harness.append(STREAMS.requests, click("chat", "ads"), click("chat", "ads"), click("chat", "ads"));
    await harness.append(STREAMS.delivery("chat"), gaveUp(1, "chat"), gaveUp(2, "chat"));
    await harness.append(STREAMS.delivery("ads"), gaveUp(3, "ads"));
    const ids = (await Array.fromAsync(harness.store.read({ to: 3 }))).map(({ id }) => id);
    return { ...browser, ids };
  }

  test("retries one, in the name of the signed-in operator", async () => {
    const { harness, press, ids } = await openWithLetters();
    expect(await press("/deliveries?channel=chat", "Retry")).toContain("1 dead letter was retried.");
    const data = { event_id: ids[1] ?? "", source: 2, channel: "chat" };
    expect(await decisions(harness)).toEqual([["DispatchRetryRequested", data, "tests"]]);
  });

  test("discards one for a reason, which it wants", async () => {
    const { harness, press, ids } = await openWithLetters();
    const path = "/deliveries?channel=ads";
    expect(await press(path, "Discard for good", { why: " " })).toContain('role="alert"');
    expect(await decisions(harness)).toEqual([]);
    expect(await press(path, "Discard for good", { why: " over " })).toContain("1 dead letter was discarded.");
    const data = { event_id: ids[2] ?? "", source: 3, channel: "ads", why: "over" };
    expect(await decisions(harness)).toEqual([["DispatchDiscarded", data, "tests"]]);
    expect(await press("/deliveries", "Retry 2 dead letters of chat")).toContain("2 dead letters were retried.");
  });

  test("acts on as many as the page named, and not on those that came since", async () => {
    const { harness, pageAt, send } = await openWithLetters();
    const page = await pageAt("/deliveries?channel=chat&link=go.example");
    expect(page).toContain("Discards 2 dead letters of chat for good: they cannot");
    await harness.append(STREAMS.requests, click("chat"));
    await harness.append(STREAMS.delivery("chat"), gaveUp(7, "chat"));
    const said = await send(page, "Discard 2 dead letters of chat", { why: "over" });
    expect(said).toContain("2 dead letters were discarded.");
    expect(said).toContain("Discard 1 dead letter of chat");
    // The operator presses the button a second time.
    expect(await send(page, "Discard 2 dead letters of chat", { why: "over" })).toContain(
      "Nothing was done: 0 would be decided now, not 2. List them again.",
    );
    expect(await decisions(harness)).toHaveLength(2);
  });

  test("retries those that match the filter of the page, and no others", async () => {
    const { harness, press } = await openWithLetters();
    await harness.append(STREAMS.requests, click("chat"));
    await harness.append(STREAMS.delivery("chat"), gaveUp(7, "chat", { mode: "single", status: 503 }));
    expect(await press("/deliveries?error=5xx&status=dead", "Retry 1 dead letter of chat")).toContain(
      "1 dead letter was retried.",
    );
    expect((await decisions(harness)).map(([, data]) => (data as { source: number }).source)).toEqual([7]);
  });

  test("names apart those that may arrive twice, and retries them only by the button that says so", async () => {
    const { harness, pageAt, press } = await openWithLetters();
    await harness.append(STREAMS.requests, click("chat"));
    const doubtful_since = new Date(harness.now).toISOString();
    await harness.append(STREAMS.delivery("chat"), gaveUp(7, "chat", { refused: false, doubtful_since }));
    expect(await pageAt("/deliveries")).toContain("1 of 3 dead letters of chat: an attempt at chat may have arrived");
    expect(await press("/deliveries", "Retry 2 dead letters of chat")).toContain(
      "2 dead letters were retried. 1 was skipped: ",
    );
    expect(await press("/deliveries", "Retry all 1 dead letter of chat")).toContain("1 dead letter was retried.");
    expect((await decisions(harness)).map(([, data]) => (data as { may_double?: true }).may_double)).toEqual([
      undefined,
      undefined,
      true,
    ]);
  });

  test("sends one in doubt again, after a warning that it may arrive twice, and once", async () => {
    const { harness, pageAt, send, ids } = await openWithLetters();
    await harness.append(STREAMS.delivery("ads"), doubted(1, "ads"));
    const page = await pageAt("/deliveries?status=in_doubt");
    expect(page).toContain("an attempt at ads may have arrived, so a retry may arrive twice.");
    expect(await send(page, "Send again, though it may arrive twice")).toContain("1 dispatch was retried.");
    const data = { event_id: ids[0] ?? "", source: 1, channel: "ads", may_double: true, in_doubt: true };
    expect(await decisions(harness)).toEqual([["DispatchRetryRequested", data, "tests"]]);
    expect(await send(page, "Send again, though it may arrive twice")).toContain(
      `0 dispatches were retried. 1 was skipped: ${ids[0]} is not in doubt.`,
    );
    expect(await decisions(harness)).toHaveLength(1);
  });

  test.each([
    ["It arrived", "arrived"],
    ["Leave it", "left"],
  ] as const)("closes one in doubt for a reason, with: %s", async (button, as) => {
    const { harness, press, ids } = await openWithLetters();
    await harness.append(STREAMS.delivery("ads"), doubted(1, "ads"));
    const path = "/deliveries?status=in_doubt";
    expect(await press(path, button, { why: " " })).toContain('role="alert"');
    expect(await press(path, button, { why: "seen there" })).toContain("1 dispatch was settled.");
    const data = { event_id: ids[0] ?? "", source: 1, channel: "ads", as, why: "seen there" };
    expect(await decisions(harness)).toEqual([["DispatchSettled", data, "tests"]]);
    expect(await press(path, button, { why: "seen there" }).catch(() => "no such button")).toBe("no such button");
  });

  test("cannot retry what its suspended channel would turn away, and is told so", async () => {
    const { harness, pageAt, press } = await openWithLetters();
    await harness.append(STREAMS.delivery("chat"), SUSPENDED);
    const page = await pageAt("/deliveries?channel=chat");
    expect(page).toContain("chat is suspended: resume it first.");
    expect(page).not.toContain("<button>Retry");
    expect(await press("/deliveries?channel=chat", "Resume chat")).toContain("chat is resumed.");
  });

  test("does nothing twice by accident: what may have arrived is left, unless doubles are accepted", async () => {
    const { harness, press } = await openWithLetters();
    const doubtful_since = new Date(harness.now).toISOString();
    await harness.append(STREAMS.requests, { type: "MessageRequested", data: { text: "hello" } });
    await harness.append(
      STREAMS.delivery("messaging"),
      gaveUp(7, "messaging", { lane: "direct", attempt: 8, refused: false, doubtful_since }),
    );
    const path = "/deliveries?channel=messaging";
    expect(await press(path, "Retry")).toContain(
      "0 dead letters were retried. 1 was skipped: an attempt at messaging may have arrived",
    );
    expect(await decisions(harness)).toEqual([]);
    expect(await press(path, "Retry", { accept_doubles: "true" })).toContain("1 dead letter was retried.");
    expect((await decisions(harness))[0]?.[1]).toMatchObject({ may_double: true });
  });
});

test("a webhook with a name has its row, its letters and its choice", async () => {
  const { harness, pageAt, press } = await openBrowser();
  const subscription = { channel: "webhook-crm" as const, types: ["LinkClicked"], receiver: "x" };
  await harness.append("webhook-crm", { type: "WebhookSubscribed", data: subscription });
  await harness.append(STREAMS.requests, click());
  const letter = { source: 2, channel: "webhook-crm", lane: "events", detail: "gone", refused: true } as const;
  await harness.append(STREAMS.delivery("webhook-crm"), outcomeOf("DispatchAbandoned", letter));
  const page = await pageAt("/deliveries?channel=webhook-crm");
  expect(page).toMatch(/<th scope="row"[^>]*>webhook-crm<\/th>/);
  expect(page).toMatch(/<option[^>]*selected[^>]*>webhook-crm<\/option>/);
  expect(page).toContain('id="webhook-crm-2"');
  await press("/deliveries?channel=webhook-crm", "Retry");
  expect((await harness.events("DispatchRetryRequested")).map(({ data }) => data.channel)).toEqual(["webhook-crm"]);
});
