// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { createClientAddress } from "../../../src/http/access/client-address.ts";
import { ask, openApp, problemIn } from "../../harness/in-process/app.ts";

const CLIENT = "203.0.113.9";

function addressOf(peer: string, forwarded: string | undefined, trusted: readonly string[]): string {
  const headers = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
  const request = new Request("http://localhost/", { headers });
  return createClientAddress(trusted)(request, { requestIP: () => ({ address: peer }) });
}

test.each([
  ["no proxy is trusted", "198.51.100.1", CLIENT, [], "198.51.100.1"],
  ["no proxy is trusted on this machine", "127.0.0.1", CLIENT, [], "127.0.0.1"],
  ["the peer is not a trusted proxy", "198.51.100.1", CLIENT, ["10.0.0.0/8"], "198.51.100.1"],
  ["the peer is a trusted proxy", "10.1.2.3", CLIENT, ["10.0.0.0/8"], CLIENT],
  ["the peer is a trusted proxy on an IPv6 socket", "::ffff:10.1.2.3", CLIENT, ["10.0.0.0/8"], CLIENT],
  ["the peer is an IPv4 client on an IPv6 socket", "::ffff:203.0.113.9", undefined, [], CLIENT],
  ["the proxy sends IPv4 mapped to IPv6", "127.0.0.1", "::FFFF:203.0.113.9", ["127.0.0.1"], CLIENT],
  ["the client forged an entry", "127.0.0.1", `1.1.1.1, 127.0.0.1, ${CLIENT}`, ["127.0.0.1"], CLIENT],
  ["two proxies are trusted", "127.0.0.1", `1.1.1.1, ${CLIENT}, 10.0.0.7`, ["127.0.0.1", "10.0.0.0/8"], CLIENT],
  ["the proxy sends ports", "127.0.0.1", `${CLIENT}:4711`, ["127.0.0.1"], CLIENT],
  ["the client has IPv6", "::1", "[2001:db8::1]:4711", ["::1"], "2001:db8::1"],
  ["the proxy sends no header", "127.0.0.1", undefined, ["127.0.0.1"], "127.0.0.1"],
  ["the last entry is unreadable", "127.0.0.1", `${CLIENT}, unknown`, ["127.0.0.1"], "127.0.0.1"],
  ["all entries are trusted proxies", "127.0.0.1", "10.0.0.8, 10.0.0.7", ["127.0.0.1", "10.0.0.0/8"], "10.0.0.8"],
] as [string, string, string | undefined, string[], string][])(
  "%s: the peer %j with the header %j, trusting %j, has the address %s",
  (_what, peer, forwarded, trusted, address) => {
    expect(addressOf(peer, forwarded, trusted)).toBe(address);
  },
);

test("only the end of a long header is read", () => {
  const forwarded = `${CLIENT}, ${Array.from({ length: 500 }, () => "127.0.0.1").join(", ")}`;
  expect(addressOf("127.0.0.1", forwarded, ["127.0.0.1"])).toBe("127.0.0.1");
});

describe("behind a proxy", () => {
  const from = (address: string, token: string) => ({ token, headers: { "x-forwarded-for": address } });

  test("a caller that guesses tokens delays only itself", async () => {
    await using world = await openApp({ trustedProxies: ["127.0.0.1"] });
    for (let guess = 0; guess < 10; guess++) await ask(world.app, "/social/health", from("198.51.100.1", "wrong"));
    expect(await problemIn(await ask(world.app, "/social/health", from("198.51.100.1", "wrong")))).toBe(
      "429 too-many-requests",
    );
    expect(await problemIn(await ask(world.app, "/social/health", from(CLIENT, "wrong")))).toBe("401 unauthorized");
  });

  test("a caller that forges another address for each guess is still limited", async () => {
    await using world = await openApp();
    const statuses = [];
    for (let guess = 0; guess < 12; guess++) {
      statuses.push((await ask(world.app, "/social/health", from(`198.51.100.${guess}`, "wrong"))).status);
    }
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429]);
  });
});
