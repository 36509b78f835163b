import type { Usage } from "../../events/outreach.ts";
import type { Prices, SentDm, SocialNetwork } from "../networks/network.ts";

const MILLIONTHS = 1_000_000;

export type Meter = ReturnType<typeof createMeter>;

type Counts = Omit<Usage, "usd">;

/**
 * Wraps a network's client to count what it charges for, also profiles that arrive with posts or messages. A send
 * counts unless it certainly failed.
 */
export function createMeter(network: SocialNetwork, prices: Prices) {
  const counts = { sends: 0, users: 0, followers: 0, posts: 0, messages: 0 };

  const count = (more: Partial<Counts>): void => {
    for (const name of Object.keys(counts) as (keyof Counts)[]) counts[name] += more[name] ?? 0;
  };

  return {
    network: countedCalls(network, count),
    /** Returns the use of the network counted so far, and its price. */
    usage: () => priced(counts, prices),
    /** Returns the counted use plus `sends` messages: what the real run would cost that a dry run previews. */
    estimate: (sends: number) => priced({ ...counts, sends: counts.sends + sends }, prices),
  };
}

function countedCalls(network: SocialNetwork, count: (more: Partial<Counts>) => void): SocialNetwork {
  const counted =
    <A extends readonly unknown[], R>(ask: (...asked: A) => Promise<R>, amount: (answer: R) => Partial<Counts>) =>
    async (...asked: A): Promise<R> => {
      const answer = await ask(...asked);
      count(amount(answer));
      return answer;
    };
  const messages = (read: readonly SentDm[]) => ({
    messages: read.length,
    users: new Set(read.map(({ senderId }) => senderId)).size,
  });
  return {
    network: network.network,
    me: counted(network.me, () => ({ users: 1 })),
    usersByUsername: counted(network.usersByUsername, ({ length }) => ({ users: length })),
    usersById: counted(network.usersById, ({ length }) => ({ users: length })),
    followers: counted(network.followers, ({ users }) => ({ followers: users.length })),
    listMembers: counted(network.listMembers, ({ users }) => ({ users: users.length })),
    searchAuthors: counted(network.searchAuthors, ({ users, posts }) => ({ users: users.length, posts })),
    sendDm: counted(network.sendDm, ({ outcome }) => ({ sends: ["sent", "in_doubt"].includes(outcome) ? 1 : 0 })),
    conversation: counted(network.conversation, messages),
    inbox: counted(network.inbox, (page) => messages(page.messages)),
  };
}

/** Returns the charge for messages that the network sent to us as signals, without a request. */
export function priceMessages(messages: number, prices: Prices): Usage {
  return priced({ sends: 0, users: 0, followers: 0, posts: 0, messages }, prices);
}

function priced(counts: Counts, prices: Prices): Usage {
  const { sends, users, followers, posts, messages } = counts;
  const total =
    sends * prices.send +
    users * prices.user +
    followers * prices.follower +
    posts * prices.post +
    messages * prices.message;
  return { ...counts, usd: total / MILLIONTHS };
}
