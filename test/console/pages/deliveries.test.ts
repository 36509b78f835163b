// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { ClickChannel } from "../../../events/channel-and-lane-names.ts";
import { DISPATCHES_LISTED } from "../../../src/delivery/undelivered-pages.ts";
import { STREAMS, type NewEvent } from "../../../src/log/event-log.ts";
import { disposedAfterEach } from "../../harness/dispose.ts";
import { ask, openApp, post, TOKEN, type AppHarness, type Given } from "../../harness/in-process/app.ts";
import { outcomeOf } from "../../harness/in-process/dispatch-outcome-events.ts";
import { clickOf } from "../../harness/in-process/make-recipient-and-click-events.ts";
import { textsAt } from "../open-console.ts";

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

/** Opens a service and signs a browser in. The result has functions that open pages and submit their forms. */
async function openBrowser(given: Given = {}) {
  const harness = disposed(await openApp(given));
  const signedIn = await post(harness.app, "/session", `token=${TOKEN}`, { headers: FORM });
  const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  const pageAt = async (path: string, notice = ""): Promise<string> => {
    const answer = await ask(harness.app, path, { headers: { cookie: `${cookie}; ${notice}` } });
    return answer.text();
  };
  /**
   * Opens a page and submits its first form with this button, with the fields in `filled` added. Returns the resulting
   * page.
   */
  const press = async (path: string, button: string, filled: Record<string, string> = {}): Promise<string> =>
    send(await pageAt(path), button, filled);
  /** Submits a form of a page that was opened earlier, which may be out of date. Returns the resulting page. */
  const send = async (page: string, button: string, filled: Record<string, string> = {}): Promise<string> => {
    const form = formsIn(page).find(({ text }) => new RegExp(`<button[^>]*>${button}</button>`).test(text));
    if (form === undefined) throw new Error(`there is no button ${button}`);
    const body = new URLSearchParams({ ...form.fields, ...filled }).toString();
    const answer = await post(harness.app, form.action, body, { headers: { ...FORM, cookie } });
    expect(answer.status).toBe(303);
    return pageAt(answer.headers.get("location") ?? "", answer.headers.get("set-cookie")?.split(";")[0]);
  };
  /** Opens an address that redirects. Returns the resulting page. */
  const follow = async (path: string): Promise<string> => {
    const { status, headers } = await ask(harness.app, path, { headers: { cookie } });
    expect(status).toBe(303);
    return pageAt(headers.get("location") ?? "", headers.get("set-cookie")?.split(";")[0]);
  };
  return { harness, pageAt, press, send, follow };
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
  test("says that there are no dead letters, and that each channel is up to date", async () => {
    const { pageAt } = await openBrowser();
    const page = await pageAt("/deliveries");
    expect(page).toContain("No dead letters");
    expect(page).toContain("Nothing is in doubt.");
    expect(page.match(/Up to date/g)).toHaveLength(3);
  });

  test("says that a channel waits, not that it delivers, while nothing was sent in the last minutes", async () => {
    const { harness, pageAt } = await openBrowser();
    await harness.append("link-go.example/x", click("chat"));
    const [, chat] = (await textsAt(await pageAt("/deliveries"), ".tile")).map(({ text }) => text);
    expect(chat).toStartWith("ChatWaiting");
  });

  test("shows of each channel what waits, the curve of a day, and why it is red or amber", async () => {
    const { harness, pageAt } = await openBrowser();
    await harness.append("link-go.example/x", click("chat", "ads"), click("chat"));
    await harness.append(STREAMS.delivery("chat"), SUSPENDED);
    const retry_at = "2027-01-01T00:00:00.000Z";
    const failed = outcomeOf("DispatchFailed", { source: 1, channel: "ads", lane: "clicks", detail: "", retry_at });
    await harness.append(STREAMS.delivery("ads"), failed);
    const page = await pageAt("/deliveries");
    const [ads, chat, messaging] = (await textsAt(page, ".tile")).map(({ text }) => text);
    expect(ads).toBe(
      "AdsFailing24 hours ago nowWaiting1All sent innot at this rate0 delivered, 1 request failed in 24 hours. The last attempt failed",
    );
    expect(chat).toMatch(
      /^ChatSuspended.*Waiting2All sent innot while suspended0 delivered.*: channel_is_archivedResume/,
    );
    expect(messaging).toMatch(/^MessagingUp to date.*Waiting0All sent in–0 delivered in 24 hours$/);
    expect(page).toContain('aria-label="Deliveries of the last 24 hours: 0, and 1 failed request"');
    expect(page).not.toContain("keyed-hash");
    const lines = (await textsAt(await pageAt("/"), ".channel p")).map(({ text }) => text);
    expect(lines.slice(0, 3)).toEqual([
      "0 in 24 hours, 1 dispatch waits; none was sent in the last minutes",
      "0 in 24 hours, 2 dispatches wait until you resume it",
      "0 in 24 hours, nothing waits",
    ]);
  });

  test("lists dead letters and dispatches in doubt with their content, reason and attempts", async () => {
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
    expect(letters).toMatch(/No request was possible from Chat.*8 tries.*<bdi>gone<\/bdi>.*may have arrived/s);
    expect(letters).toContain("1 may have arrived, and retrying these can create duplicates.");
    expect(inDoubt).toContain('Click by a person on <a href="/links/go.example/x">');
    expect(inDoubt).toMatch(/1 try.*504, <bdi>timed out<\/bdi>/s);
    expect(inDoubt).toContain("Sending again can create duplicates: an attempt at ads may have arrived");
    expect(await pageAt("/deliveries?channel=messaging")).not.toContain("timed out");
  });

  test("continues by a cursor, also within one event, and shows each dispatch once", async () => {
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

  test("shows what the filter in its address matches, and the fault of an invalid one", async () => {
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
    const page = await pageAt("/deliveries?error=%3Cb%3E");
    expect(page).toMatch(/role="alert">an error is one of refused, .*, not &quot;&lt;b>&quot;\.<\/p>/);
    expect(page).toContain("error: <bdi>&lt;b></bdi>");
  });

  test("groups dead letters by their cause, each with a few of them and a link to all", async () => {
    const { harness, pageAt } = await openBrowser();
    await harness.append(STREAMS.requests, ...Array.from({ length: 9 }, () => click("chat")));
    const refused = (status: number) => ({ mode: "single", status, attempt: 8, refused: false });
    for (const source of [1, 2, 3, 4, 5, 6, 7, 8])
      await harness.append(STREAMS.delivery("chat"), gaveUp(source, "chat", refused(429)));
    await harness.append(STREAMS.delivery("chat"), gaveUp(9, "chat", refused(503)));
    const causes = await textsAt(await pageAt("/deliveries"), ".cause");
    expect(causes.map(({ text }) => text.slice(0, 50))).toEqual([
      expect.stringMatching(/^429 from Chat 8gone\. None arrived/),
      expect.stringMatching(/^503 from Chat 1gone\. None arrived/),
    ]);
    expect(causes[0]?.text).toMatch(/6 of 8 +Show all 8$/);
    const href = causes[0]?.links.at(-1)?.replaceAll("&amp;", "&") ?? "";
    expect(href).toBe("/deliveries?channel=chat&status=dead&error=429");
    expect([...(await pageAt(href)).matchAll(/<li id="chat-/g)]).toHaveLength(8);
  });
});

describe("a browser on the page of deliveries", () => {
  async function openWithLetters() {
    const browser = await openBrowser();
    const { harness } = browser;
    await harness.append(STREAMS.requests, click("chat", "ads"), click("chat", "ads"), click("chat", "ads"));
    await harness.append(STREAMS.delivery("chat"), gaveUp(1, "chat"), gaveUp(2, "chat"));
    await harness.append(STREAMS.delivery("ads"), gaveUp(3, "ads"));
    const ids = (await Array.fromAsync(harness.store.read({ to: 3 }))).map(({ id }) => id);
    return { ...browser, ids };
  }

  const ALL_OF_CHAT = "/deliveries/decide?channel=chat&error=no_request&all=true";

  test("retries chosen dead letters with the signed-in operator as caller", async () => {
    const { harness, pageAt, send, ids } = await openWithLetters();
    const asked = await pageAt("/deliveries/decide?channel=chat&error=no_request&source=2&act=retry");
    expect(asked).toContain("<h1>Retry 1 dead letter of Chat?</h1>");
    expect(asked).toContain("so retrying cannot create duplicates");
    expect(await send(asked, "Retry 1")).toContain("1 dispatch was retried.");
    const data = { event_id: ids[1] ?? "", source: 2, channel: "chat" };
    expect(await decisions(harness)).toEqual([["DispatchRetryRequested", data, "tests"]]);
  });

  test("retries a whole cause, of which the page's filter selects a part", async () => {
    const { harness, pageAt, send } = await openWithLetters();
    await harness.append("link-go.example/other", clickOf({ channels: ["chat"], short_code: "other" }));
    await harness.append(STREAMS.delivery("chat"), gaveUp(7, "chat"));
    const page = await pageAt("/deliveries?link=go.example/other");
    expect((await textsAt(page, ".cause-head .actions > a")).map(({ text }) => text)).toEqual(["Retry 1…"]);
    expect(await send(page, "Retry 1")).toContain("1 dispatch was retried.");
    expect((await decisions(harness)).map(([, data]) => (data as { source: number }).source)).toEqual([7]);
    expect(await send(await pageAt("/deliveries?channel=chat"), "Retry 2")).toContain("2 dispatches were retried.");
  });

  test("names the number of all before it acts, and leaves those that arrived since", async () => {
    const { harness, pageAt, send } = await openWithLetters();
    const page = await pageAt(`${ALL_OF_CHAT}&act=discard`);
    expect(page).toContain("<h1>Discard 2 dead letters of Chat?</h1>");
    await harness.append(STREAMS.requests, click("chat"));
    await harness.append(STREAMS.delivery("chat"), gaveUp(7, "chat"));
    expect(await send(page, "Discard 2", { why: " " })).toContain('role="alert"');
    expect(await send(page, "Discard 2", { why: " over " })).toContain("2 dispatches were discarded.");
    // The operator presses the button a second time.
    expect(await send(page, "Discard 2", { why: "over" })).toContain(
      "Nothing was done: 0 would be decided now, not 2. List them again.",
    );
    expect((await decisions(harness)).map(([type, data]) => [type, (data as { why: string }).why])).toEqual([
      ["DispatchDiscarded", "over"],
      ["DispatchDiscarded", "over"],
    ]);
  });

  test("returns with a notice if nothing was ticked", async () => {
    const { harness, pageAt, follow } = await openWithLetters();
    for (const chosen of ["channel=chat", "channel=messaging&all=true", "all=true", "channel=chat&source=x"]) {
      const page = await follow(`/deliveries/decide?${chosen}`);
      expect(page).toContain("<h1>Deliveries</h1>");
      expect(page).toMatch(/<p role="alert">Nothing was ticked\. Tick dead letters/);
    }
    expect(await pageAt("/deliveries")).not.toContain("Nothing was ticked");
    expect(await harness.events("PersonalDataRead")).toEqual([]);
  });

  test("retries letters that may arrive twice only by a separate button", async () => {
    const { harness, pageAt, send } = await openWithLetters();
    await harness.append(STREAMS.requests, click("chat"));
    const doubtful_since = new Date(harness.now).toISOString();
    await harness.append(STREAMS.delivery("chat"), gaveUp(7, "chat", { refused: false, doubtful_since }));
    const page = await pageAt(`${ALL_OF_CHAT}&act=retry`);
    expect(page).toContain("1 of 3 can create duplicates: an attempt at chat may have arrived");
    expect(await send(page, "Retry 2")).toContain("2 dispatches were retried. 1 was skipped: ");
    expect(await send(await pageAt(`${ALL_OF_CHAT}&act=retry`), "Retry 1")).toContain("1 dispatch was retried.");
    expect((await decisions(harness)).map(([, data]) => (data as { may_double?: true }).may_double)).toEqual([
      undefined,
      undefined,
      true,
    ]);
  });

  test("answers three dispatches in doubt in one form, only with a reason", async () => {
    const { harness, press, ids } = await openWithLetters();
    await harness.append(STREAMS.delivery("ads"), doubted(1, "ads"), doubted(2, "ads"));
    await harness.append(STREAMS.delivery("messaging"), doubted(1, "messaging"));
    const path = "/deliveries?status=in_doubt&channel=ads";
    const answers = { "row-1": "arrived", "row-2": "again" };
    expect(await press(path, "Record decisions", { ...answers, why: " " })).toContain('role="alert"');
    expect(await press(path, "Record decisions", { why: "seen there" })).toContain(
      "Nothing was decided: choose an answer for one dispatch at least.",
    );
    expect(await decisions(harness)).toEqual([]);
    expect(await press(path, "Record decisions", { ...answers, why: "seen there" })).toContain(
      "2 decisions recorded: 1 arrived, 0 left, 1 sent again.",
    );
    const about = (at: number) => ({ event_id: ids[at - 1] ?? "", source: at, channel: "ads" });
    expect(await decisions(harness)).toEqual([
      ["DispatchSettled", { ...about(1), as: "arrived", why: "seen there" }, "tests"],
      ["DispatchRetryRequested", { ...about(2), may_double: true, in_doubt: true }, "tests"],
    ]);
  });

  test("cannot retry the letters of a suspended channel, and sees the reason", async () => {
    const { harness, pageAt, press } = await openWithLetters();
    await harness.append(STREAMS.delivery("chat"), SUSPENDED);
    const page = await pageAt("/deliveries?channel=chat");
    expect(page).toContain("chat is suspended: resume it first.");
    expect(page).not.toContain('value="retry"');
    expect(await pageAt(`${ALL_OF_CHAT}&act=retry`)).toContain("<p>chat is suspended: resume it first.</p>");
    expect(await press("/deliveries?channel=chat", "Resume Chat")).toContain("chat is resumed.");
  });
});

test("a retry to a channel that is not configured is disabled, with a link to the setup", async () => {
  const { harness, pageAt } = await openBrowser({ channels: ["ads"] });
  await harness.append(STREAMS.requests, click("chat"), click("chat"));
  await harness.append(STREAMS.delivery("chat"), gaveUp(1, "chat"), doubted(2, "chat"));
  const hindrance = { text: "Chat is not configured. What to set up", links: ["/setup"] };
  const page = await pageAt("/deliveries");
  expect(await textsAt(page, ".cause small.quiet")).toEqual([hindrance, hindrance]);
  expect(page).toContain('value="retry" disabled>Retry…');
  expect(page).toContain('name="row-2" value="again" disabled');
  expect(page).not.toContain('value="arrived" disabled');
  expect(await textsAt(await pageAt("/attention"), ".actions > button[disabled]")).toMatchObject([
    { text: "Retry 1…" },
  ]);
  expect(await textsAt(await pageAt("/attention"), ".actions > small")).toEqual([hindrance]);
  const asked = await pageAt("/deliveries/decide?channel=chat&all=true&act=retry");
  expect(await textsAt(asked, ".confirm small")).toEqual([hindrance]);
  expect(asked).not.toContain("/console/deliveries/retry");
});

test("a named webhook has its tile and its letters", async () => {
  const { harness, pageAt, press } = await openBrowser({ channels: ["webhook-crm"] });
  const subscription = { channel: "webhook-crm" as const, types: ["LinkClicked"], receiver: "x" };
  await harness.append("webhook-crm", { type: "WebhookSubscribed", data: subscription });
  await harness.append(STREAMS.requests, click());
  const letter = { source: 2, channel: "webhook-crm", lane: "events", detail: "gone", refused: true } as const;
  await harness.append(STREAMS.delivery("webhook-crm"), outcomeOf("DispatchAbandoned", letter));
  const page = await pageAt("/deliveries?channel=webhook-crm");
  expect(page).toContain("<h2>Webhook crm</h2>");
  expect(page).toContain('id="webhook-crm-2"');
  await press("/deliveries/decide?channel=webhook-crm&all=true", "Retry 1");
  expect((await harness.events("DispatchRetryRequested")).map(({ data }) => data.channel)).toEqual(["webhook-crm"]);
});
