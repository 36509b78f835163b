// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import type { InboxMessage, SendDmResult, SocialNetwork, SocialUser } from "../../src/networks/network.ts";
import { SocialError } from "../../src/networks/network.ts";
import { X_PRICES, xPrices } from "../../src/networks/x/x-api.ts";
import { createMeter } from "../../src/outreach/network-cost-in-usd.ts";

const NOTHING = { sends: 0, users: 0, followers: 0, posts: 0, messages: 0, usd: 0 };

const user = (id: string): SocialUser => ({
  id,
  username: `u${id}`,
  name: "U",
  receivesOurDm: undefined,
  protected: undefined,
});

const message = (id: string, senderId: string): InboxMessage => ({
  id,
  senderId,
  senderUsername: undefined,
  text: "Hi",
  createdAt: 0,
});

/** Puts a meter of costs around a fake network that gives these answers and fails at all its other calls. */
function meterOf(answers: Partial<SocialNetwork>) {
  const refuse = () => Promise.reject(new SocialError("unavailable", "down"));
  return createMeter(
    {
      network: "x",
      me: refuse,
      usersByUsername: refuse,
      usersById: refuse,
      followers: refuse,
      listMembers: refuse,
      searchAuthors: refuse,
      sendDm: refuse,
      conversation: refuse,
      inbox: refuse,
      ...answers,
    },
    X_PRICES,
  );
}

describe("the cost of reads", () => {
  const two = [user("1"), user("2")];
  const page = { limit: 100 };

  test.each<[string, Partial<SocialNetwork>, (network: SocialNetwork) => Promise<unknown>, object]>([
    ["me", { me: async () => user("1") }, (x) => x.me("t"), { users: 1, usd: 0.01 }],
    [
      "a look-up by handle",
      { usersByUsername: async () => two },
      (x) => x.usersByUsername("t", ["a", "b", "c"]),
      { users: 2, usd: 0.02 },
    ],
    ["a look-up by id", { usersById: async () => two }, (x) => x.usersById("t", ["1"]), { users: 2, usd: 0.02 }],
    [
      "own followers",
      { followers: async () => ({ users: two, next: "n" }) },
      (x) => x.followers("t", "9", page),
      { followers: 2, usd: 0.02 },
    ],
    [
      "members of a list",
      { listMembers: async () => ({ users: two }) },
      (x) => x.listMembers("t", "9", page),
      { users: 2, usd: 0.02 },
    ],
    [
      "posts, with their authors",
      { searchAuthors: async () => ({ users: two, posts: 5 }) },
      (x) => x.searchAuthors("t", "q", page),
      { posts: 5, users: 2, usd: 0.045 },
    ],
    [
      "messages of a conversation, with their authors",
      { conversation: async () => [message("1", "7"), message("2", "8"), message("3", "7")] },
      (x) => x.conversation("t", "7", 5),
      { messages: 3, users: 2, usd: 0.05 },
    ],
    [
      "messages of the inbox, with their authors",
      { inbox: async () => ({ messages: [message("1", "7"), message("2", "7")] }) },
      (x) => x.inbox("t", page),
      { messages: 2, users: 1, usd: 0.03 },
    ],
  ])("counts the returned objects: %s", async (_name, answers, ask, counted) => {
    const meter = meterOf(answers);
    await ask(meter.network);
    expect(meter.usage()).toEqual({ ...NOTHING, ...counted });
  });

  test("is a tenth for the followers of an account that owns the developer app", async () => {
    expect(xPrices({ accountOwnsApp: true })).toEqual({ ...X_PRICES, follower: 1_000 });
    expect(xPrices({ accountOwnsApp: false })).toEqual(X_PRICES);
  });

  test("is measured without changing request or response", async () => {
    const asked: unknown[] = [];
    const followers: SocialNetwork["followers"] = async (...question) => {
      asked.push(question);
      return { users: two, next: "n" };
    };
    const { network } = meterOf({ followers });
    expect(await network.followers("t", "9", { limit: 5, cursor: "c" })).toEqual({ users: two, next: "n" });
    expect(asked).toEqual([["t", "9", { limit: 5, cursor: "c" }]]);
  });

  test("is zero for a failed read, which is rethrown", async () => {
    const meter = meterOf({});
    const thrown: unknown = await meter.network.inbox("t", page).catch((fault: unknown) => fault);
    expect(thrown).toBeInstanceOf(SocialError);
    expect(meter.usage()).toEqual(NOTHING);
  });
});

describe("the cost of sends", () => {
  const detail = "words";
  test.each<[SendDmResult["outcome"], object, number]>([
    ["sent", { messageId: "1" }, 1],
    ["in_doubt", { detail }, 1],
    ["rate_limited", { retryAt: 5 }, 0],
    ["recipient_closed", { detail }, 0],
    ["rejected", { detail }, 0],
    ["unreachable", { detail }, 0],
    ["unauthorized", {}, 0],
    ["stopped", { reason: "credits_depleted", detail }, 0],
  ])("follows from the outcome %s", async (outcome, more, sends) => {
    const meter = meterOf({ sendDm: async () => ({ outcome, rate: undefined, ...more }) as SendDmResult });
    await meter.network.sendDm("t", "7", "Hi");
    expect(meter.usage()).toEqual({ ...NOTHING, sends, usd: sends * 0.015 });
  });

  test("includes future sends only in the estimate", async () => {
    const meter = meterOf({ usersById: async () => [user("1")] });
    await meter.network.usersById("t", ["1"]);
    expect(meter.estimate(99)).toEqual({ ...NOTHING, sends: 99, users: 1, usd: 1.495 });
    expect(meter.usage()).toEqual({ ...NOTHING, users: 1, usd: 0.01 });
  });
});

test("many small amounts of concurrent calls add up without drift", async () => {
  const meter = meterOf({ followers: async () => ({ users: [user("1")] }), usersById: async () => [user("1")] });
  const asked = Array.from({ length: 1_000 }, (_, index) =>
    index % 2 === 0 ? meter.network.followers("t", "9", { limit: 1 }) : meter.network.usersById("t", ["1"]),
  );
  await Promise.all(asked);
  expect(meter.usage()).toEqual({ ...NOTHING, followers: 500, users: 500, usd: 10 });
});
