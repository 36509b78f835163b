// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import type { DispatchResult } from "../../../src/networks/network.ts";
import { classifyAnswer } from "../../../src/networks/classify-answer.ts";
import { createWhatsappChannel, WHATSAPP_ANSWERS, whatsappText } from "../../../src/networks/messaging/whatsapp.ts";
import { refusalsOf, type RefusalKind } from "../../../sandbox/refusals.ts";
import { startSandbox } from "../../../sandbox/sandbox.ts";
import { secret } from "../../../src/platform/secret.ts";
import { CLICK, MESSAGE, NOW } from "../sample-dispatches.ts";
import { answer, deadUrl, safeFetchTo, serve, serveRaw } from "../../harness/in-process/local-test-servers.ts";

const OPTIONS = { timeoutMs: 60_000, now: NOW };
const SENT = { messaging_product: "whatsapp", contacts: [{ wa_id: "1555" }], messages: [{ id: "wamid.HBgL" }] };

function whatsappAt(baseUrl: string, { token = "wa-token", number = "106", to = "1555" } = {}) {
  const accessToken = secret(token);
  return createWhatsappChannel({ phoneNumberId: number, accessToken, to, baseUrl, safeFetch: safeFetchTo(baseUrl) });
}

const error = (code: number, more: object = {}) => ({ error: { message: "secret words", code, ...more } });

test.each<[number, object | string, DispatchResult["outcome"] | "stopped"]>([
  [200, SENT, "delivered"],
  [200, { messages: [] }, "in_doubt"],
  [200, "<html>", "in_doubt"],
  [204, "", "in_doubt"],
  [400, error(100), "refused"],
  [400, error(100, { error_subcode: 33 }), "stopped"],
  [400, error(33), "stopped"],
  [400, error(131_009), "refused"],
  [400, error(131_051), "refused"],
  [400, error(131_026), "stopped"],
  [400, error(131_047), "stopped"],
  [400, error(131_048), "stopped"],
  [403, error(131_031), "stopped"],
  [403, error(368), "stopped"],
  [401, error(190, { error_subcode: 463 }), "stopped"],
  [401, error(0), "stopped"],
  [500, error(3), "stopped"],
  [403, error(200), "stopped"],
  [401, "", "stopped"],
  [404, "<html>", "stopped"],
  [400, error(130_429), "retryable"],
  [429, error(131_056), "retryable"],
  [400, error(4), "retryable"],
  [400, error(80_007), "retryable"],
  [429, "", "retryable"],
  [400, "", "refused"],
  [408, "", "in_doubt"],
  [400, error(1), "in_doubt"],
  [400, error(131_016, { is_transient: true }), "in_doubt"],
  [500, error(131_000), "in_doubt"],
  [502, "<html>", "in_doubt"],
])("WhatsApp's answer %i %j is classified as %s", (status, body, verdict) => {
  const result = classifyAnswer(answer(status, body), WHATSAPP_ANSWERS);
  expect(result.outcome === "refused" && result.channel ? "stopped" : result.outcome).toBe(verdict);
  expect(JSON.stringify(result)).not.toContain("secret words");
});

test.each<[number, Record<string, string>, number]>([
  [130_429, {}, 1_000],
  [131_056, {}, 6_000],
  [131_056, { "retry-after": "9" }, 9_000],
  [80_007, {}, 60_000],
  [80_007, { "x-business-use-case-usage": '{"1":[{"estimated_time_to_regain_access":5}]}' }, 300_000],
])("the limit %i with headers %j pauses for %i ms", (code, headers, retryAfterMs) => {
  expect(classifyAnswer(answer(400, error(code), headers), WHATSAPP_ANSWERS)).toMatchObject({ retryAfterMs });
});

test("the result omits the recipient's number, and pauses at high usage", () => {
  expect(classifyAnswer(answer(200, SENT), WHATSAPP_ANSWERS)).toEqual({ outcome: "delivered", status: 200 });
  const headers = { "x-app-usage": '{"call_count":97}' };
  expect(classifyAnswer(answer(200, SENT, headers), WHATSAPP_ANSWERS)).toMatchObject({ pauseMs: 60_000 });
});

test("a closed conversation window says how to open it", () => {
  expect(classifyAnswer(answer(400, error(131_047)), WHATSAPP_ANSWERS)).toMatchObject({
    detail:
      "WhatsApp answered 400, error 131047: more than 24 hours since the recipient last wrote: it takes a message from them first",
  });
});

describe("a text", () => {
  test.each([
    ["nothing to do", "nothing to do"],
    ["5 * 3", "5 * 3"],
    ["*bold* and *bold*", "∗bold∗ and ∗bold∗"],
    ["_a_ ~b~ `c` ```d```", "ˍaˍ ∼b∼ ˋcˋ ˋˋˋdˋˋˋ"],
    ["code 62070503***63047", "code 62070503∗∗∗63047"],
    ["> not said\n> by us", "› not said\n› by us"],
    ["a > b", "a > b"],
    ["- a\n* b\n -c", "‐ a\n∗ b\n -c"],
    ["_x_ https://example.com/_a_?b=*c* _y_", "ˍxˍ https://example.com/_a_?b=*c* ˍyˍ"],
    ["_x_ http://127.0.0.1:8080/_a_", "ˍxˍ http://127.0.0.1:8080/_a_"],
    ["go.example.com/a_b_c and snake_case_name", "go.example.com/a_b_c and snakeˍcaseˍname"],
    ["*https://example.com/*", "∗https://example.com/*"],
  ])("%j is escaped as %j", (text, body) => {
    expect(whatsappText(text)).toBe(body);
  });

  test("is cut between characters beyond 4,096 units", () => {
    expect(whatsappText("*".repeat(4096))).toBe("∗".repeat(4096));
    expect(whatsappText(`${"a".repeat(4094)}😀😀`)).toBe(`${"a".repeat(4094)}…`);
  });

  test("keeps its length and repeats no marker outside links", () => {
    const part = fc.oneof(fc.string(), fc.constantFrom("*", "_", "~", "`", " ", "\n", "> ", "http://e.com/*_"));
    const texts = fc.array(part, { maxLength: 40 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(texts, (text) => {
        const body = whatsappText(text);
        expect(body.length).toBe(Math.min(4096, text.length));
        const outside = body.replace(/https?:\/\/\S+|[\p{L}\d.-]+\/\S*/giu, "");
        for (const marker of ["*", "_", "~", "`"]) expect(outside.split(marker).length).toBeLessThanOrEqual(2);
      }),
    );
  });
});

test("a message is one text without a preview of its links", async () => {
  await using server = serve(() => Response.json(SENT));
  expect((await whatsappAt(server.url).send({ ...MESSAGE, text: "*hi* *you*" }, OPTIONS)).outcome).toBe("delivered");
  const [request] = server.requests;
  expect([request?.method, request?.path, request?.query.size]).toEqual(["POST", "/v27.0/106/messages", 0]);
  expect(request?.headers.get("authorization")).toBe("Bearer wa-token");
  expect(JSON.parse(request?.body ?? "")).toEqual({
    messaging_product: "whatsapp",
    recipient_type: "individual",
    to: "1555",
    type: "text",
    text: { preview_url: false, body: "∗hi∗ ∗you∗" },
    biz_opaque_callback_data: MESSAGE.id,
  });
});

test("a retry has an id of its own, by which WhatsApp reports on it", async () => {
  await using server = serve(() => Response.json(SENT));
  await whatsappAt(server.url).send({ ...MESSAGE, retryId: "retry-1" }, OPTIONS);
  expect(JSON.parse(server.requests[0]?.body ?? "")).toMatchObject({ biz_opaque_callback_data: "retry-1" });
});

test.each(["BR.15a9", "US.ENT.118", "GB.1"])("the business-scoped id %s is sent in the field recipient", async (to) => {
  await using server = serve(() => Response.json(SENT));
  expect((await whatsappAt(server.url, { to }).send(MESSAGE, OPTIONS)).outcome).toBe("delivered");
  const body = JSON.parse(server.requests[0]?.body ?? "") as object;
  expect(body).toMatchObject({ recipient_type: "individual", recipient: to });
  expect(body).not.toHaveProperty("to");
});

test("a click is announced without the visitor's address", async () => {
  await using server = serve(() => Response.json(SENT));
  await whatsappAt(server.url).send(CLICK, OPTIONS);
  expect(server.requests[0]?.body).toContain("go.example.com/autumn");
  expect(server.requests[0]?.body).not.toContain(CLICK.ip);
});

test("a call without an answer is in doubt; a refused connection is retryable", async () => {
  await using silent = await serveRaw(() => undefined);
  await using broken = await serveRaw((socket) => socket.resetAndDestroy());
  for (const { url } of [silent, broken]) {
    expect((await whatsappAt(url).send(MESSAGE, { ...OPTIONS, timeoutMs: 50 })).outcome).toBe("in_doubt");
  }
  expect((await whatsappAt(await deadUrl()).send(MESSAGE, OPTIONS)).outcome).toBe("retryable");
});

test("the credential changes with recipient, number and token", () => {
  const channels = [{}, { to: "2" }, { number: "2" }, { token: "2" }].map((more) =>
    whatsappAt("http://127.0.0.1:1", more),
  );
  expect(new Set(channels.map(({ credential }) => credential.reveal())).size).toBe(4);
});

describe("the check", () => {
  test("reads the number, with the token in a header", async () => {
    await using server = serve(() => Response.json({ id: "106" }));
    expect((await whatsappAt(server.url).check(1000)).ok).toBe(true);
    expect(server.requests[0]).toMatchObject({ method: "GET", path: "/v27.0/106" });
    expect(server.requests[0]?.query.toString()).toBe("fields=id");
    expect(server.requests[0]?.headers.get("authorization")).toBe("Bearer wa-token");
  });

  test("names the settings to check, and fails if WhatsApp does not listen", async () => {
    await using server = serve(() => Response.json(error(190), { status: 401 }));
    expect(await whatsappAt(server.url).check(1000)).toEqual({
      ok: false,
      detail: "WhatsApp answered 401, error 190: check WHATSAPP_PHONE_NUMBER_ID and WHATSAPP_ACCESS_TOKEN",
    });
    expect((await whatsappAt(await deadUrl()).check(1000)).ok).toBe(false);
  });
});

describe("the sandbox's WhatsApp", () => {
  const HOUR_MS = 3_600_000;

  async function sandboxed() {
    const sandbox = await startSandbox({ clock: () => NOW });
    const { clock, whatsapp: state } = sandbox;
    const url = sandbox.urls.whatsapp;
    const own = { token: state.accessToken, number: state.phoneNumberId, to: state.to };
    const at = (more: object = {}) => whatsappAt(url, { ...own, ...more });
    const send = async (more: object = {}) => at(more).send(MESSAGE, OPTIONS);
    return { clock, state, url, at, send, [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose]() };
  }

  test("accepts text for 24 hours after the recipient wrote, repeats included", async () => {
    await using whatsapp = await sandboxed();
    whatsapp.clock.advance(24 * HOUR_MS - 1);
    for (let times = 0; times < 2; times++) expect((await whatsapp.send()).outcome).toBe("delivered");
    whatsapp.clock.advance(1);
    expect(await whatsapp.send()).toMatchObject({ outcome: "refused", channel: true });
    whatsapp.state.wroteAt = whatsapp.clock.now();
    expect((await whatsapp.send({ to: `+${whatsapp.state.to}` })).outcome).toBe("delivered");
    const { to } = whatsapp.state;
    const taken = whatsapp.state.messages.kept.map((message) => [message.to, message.text]);
    expect(taken).toEqual(Array.from({ length: 3 }, () => [to, MESSAGE.text]));
  });

  test("accepts the recipient's business-scoped id and refuses another", async () => {
    await using whatsapp = await sandboxed();
    const { userId, messages } = whatsapp.state;
    expect((await whatsapp.send({ to: userId })).outcome).toBe("delivered");
    expect(messages.kept.map(({ to }) => to)).toEqual([userId]);
    expect(await whatsapp.send({ to: `${userId}0` })).toMatchObject({ outcome: "refused", channel: true });
  });

  test("rejects a wrong version, token, number, recipient or text", async () => {
    await using whatsapp = await sandboxed();
    const { state, url } = whatsapp;
    for (const wrong of [{ token: "other" }, { number: "1" }, { to: "1" }]) {
      expect(await whatsapp.send(wrong)).toMatchObject({ outcome: "refused", channel: true });
    }
    const post = async (body: object | string, version = "v27.0") => {
      const headers = { authorization: `Bearer ${state.accessToken}` };
      const text = typeof body === "string" ? body : JSON.stringify(body);
      const endpoint = `${url}/${version}/${state.phoneNumberId}/messages`;
      return (await fetch(endpoint, { method: "POST", headers, body: text })).status;
    };
    const good = { messaging_product: "whatsapp", to: state.to, type: "text", text: { body: "x" } };
    const long = { text: { body: "a".repeat(4097) } };
    for (const bad of [
      { messaging_product: "x" },
      { to: "" },
      { to: state.userId },
      { type: "image" },
      { text: {} },
      long,
    ]) {
      expect(await post({ ...good, ...bad })).toBe(400);
    }
    expect(await post("{")).toBe(400);
    expect([await post(good, "v21.0"), await post(good, "v28.0"), await post(good)]).toEqual([400, 400, 200]);
    expect(state.messages.total).toBe(1);
    expect((await whatsapp.at().check(1000)).ok).toBe(true);
    expect((await whatsapp.at({ number: "1" }).check(1000)).ok).toBe(false);
  });

  test("limits messages per second, and to one recipient", async () => {
    await using whatsapp = await sandboxed();
    whatsapp.state.limit = 1;
    expect((await whatsapp.send()).outcome).toBe("delivered");
    expect(await whatsapp.send()).toMatchObject({ outcome: "retryable", retryAfterMs: 1_000 });
    whatsapp.clock.advance(1_000);
    whatsapp.state.pairLimit = 1;
    expect(await whatsapp.send()).toMatchObject({ outcome: "retryable", retryAfterMs: 6_000 });
  });

  test.each<[RefusalKind, object]>([
    ["429", { outcome: "retryable", status: 429, retryAfterMs: 3000 }],
    ["500", { outcome: "in_doubt", status: 500 }],
    ["502_html", { outcome: "in_doubt", status: 502 }],
    ["token_revoked", { outcome: "refused", status: 401, channel: true }],
    ["window_closed", { outcome: "refused", status: 400, channel: true }],
    ["account_locked", { outcome: "refused", status: 403, channel: true }],
  ])("answers the fault %s as WhatsApp would", async (kind, result) => {
    await using server = serve(
      () => refusalsOf("whatsapp")[kind]?.({ retryAfter: 3, path: "", now: NOW }) ?? Response.error(),
    );
    expect(await whatsappAt(server.url).send(MESSAGE, OPTIONS)).toMatchObject(result);
  });
});
