// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { unlinkAccount } from "../../src/account/link-and-unlink-account.ts";
import { OAuthError, type TokenPair } from "../../src/account/oauth.ts";
import { ServiceError } from "../../src/platform/service-error.ts";
import { disposedAfterEach } from "../harness/dispose.ts";
import {
  nextTurn,
  openAccount,
  type AccountProcess,
  type AccountHarness,
} from "../harness/in-process/simulated-oauth-account.ts";
import { toStateContext } from "../harness/in-process/temporary-log.ts";
import type { SocialNetwork } from "../../src/networks/network.ts";

const LIFE_MS = 60_000;
/** Time after which an instance's lease on the tokens has expired if it was not renewed. */
const LEASE_MS = 15_001;

const echo = async (token: string): Promise<string> => token;
const outcomeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.catch((fault: unknown) => (fault as { kind?: string }).kind ?? fault);

const disposed = disposedAfterEach();

async function linked() {
  const world = disposed(await openAccount());
  const first = await world.start();
  await world.link(first, LIFE_MS);
  return { world, first };
}

/**
 * Freezes the process while its refresh waits for X's answer. If `rotated`, X has already replaced the refresh token by
 * then. In the result, `answer` lets X's answer arrive.
 */
async function standStillInRefresh(world: AccountHarness, process: AccountProcess, rotated: boolean) {
  const { oauth } = world;
  const { refresh } = oauth;
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  oauth.refresh = async (token) => {
    oauth.refresh = refresh;
    const answer: TokenPair | undefined = rotated ? await refresh(token) : undefined;
    asked.resolve();
    await answered.promise;
    return answer ?? refresh(token);
  };
  const used = outcomeOf(process.tokens.use(echo));
  await asked.promise;
  process.freeze();
  return { used, answer: () => answered.resolve() };
}

async function unlink({ oauth, eventLog }: AccountHarness, { tokens, projector }: AccountProcess): Promise<void> {
  const account = { oauth, tokens, network: {} as SocialNetwork, pinnedHandle: undefined };
  await unlinkAccount(toStateContext({ eventLog, projector }), account, {});
}
test("a kill before the new pair is stored ends the grant after one more refresh", async () => {
  const { world, first } = await linked();
  await standStillInRefresh(world, first, true);
  const next = await world.start();
  expect(await next.tokens.use(echo)).toBe("access-1");
  expect(world.oauth.refreshed).toEqual(["refresh-1"]);

  world.now += LIFE_MS;
  for (const process of [next, next, await world.start()]) {
    expect(await outcomeOf(process.tokens.use(echo))).toBe("unauthorized");
    expect(process.projector.state("account").authorized).toBe(false);
  }
  expect(world.oauth.refreshed).toEqual(["refresh-1", "refresh-1"]);
  expect([...world.announced.values()]).toEqual(["the X account is no longer authorized: open /social/auth again"]);
  expect(await world.types()).toEqual(["AccountAuthorized", "TokenRefreshFailed"]);
  const last = (await Array.fromAsync(world.eventLog.store.read())).at(-1);
  expect(last?.data).toMatchObject({ reason: expect.stringMatching(/; the answer to an earlier refresh was lost/) });
});

test.each(["get", "put"] as const)(
  "a process that stands still in the vault's %s asks the network nothing",
  async (name) => {
    const { world, first } = await linked();
    const stood: AccountProcess = await world.start({
      vault: {
        ...first.vault,
        async [name](...asked: never[]) {
          const result: unknown = await (first.vault[name] as (...asked: never[]) => Promise<unknown>)(...asked);
          stood.freeze();
          world.now += LEASE_MS;
          return result;
        },
      },
    });
    expect(await outcomeOf(stood.tokens.use(echo))).toBe("unavailable");
    expect(world.oauth.refreshed).toEqual([]);
    expect((await first.vault.get("x-tokens"))?.value).toContain(`"begun":${name === "put"}`);

    world.now += LIFE_MS;
    expect(await (await world.start()).tokens.use(echo)).toBe("access-2");
    expect(world.oauth.refreshed).toEqual(["refresh-1"]);
    expect(world.announced.size).toBe(0);
  },
);

test("a kill before the network is reached leaves the refresh token valid, without an announcement", async () => {
  const { world, first } = await linked();
  await standStillInRefresh(world, first, false);
  const next = await world.start();
  world.now += LIFE_MS;
  expect(await next.tokens.use(echo)).toBe("access-2");
  expect(world.announced.size).toBe(0);
  expect(await world.types()).toEqual(["AccountAuthorized", "TokenRefreshed"]);
});

test("an outage of the network keeps the refresh token in doubt", async () => {
  const { world, first } = await linked();
  await standStillInRefresh(world, first, true);
  const { tokens } = await world.start();
  world.now += LIFE_MS;
  world.oauth.faults.push(new OAuthError("unavailable", "down"));
  expect(await outcomeOf(tokens.use(echo))).toBe("unavailable");
  expect(await outcomeOf(tokens.use(echo))).toBe("unauthorized");
  const last = (await Array.fromAsync(world.eventLog.store.read())).at(-1);
  expect(last?.data).toMatchObject({
    reason: "invalid_request; the answer to an earlier refresh was lost before it could be stored",
  });
});

/** Makes the next refresh replace the refresh token at X and then fail, as if X's answer did not arrive in time. */
function loseAnswer({ oauth }: AccountHarness): void {
  const { refresh } = oauth;
  oauth.refresh = async (token) => {
    oauth.refresh = refresh;
    await refresh(token);
    throw new OAuthError("unavailable", "no answer in time", true);
  };
}

test("after a refresh without an answer the access token is used until it expires", async () => {
  const { world, first } = await linked();
  loseAnswer(world);
  const next = await world.start();
  for (const { tokens } of [first, first, next]) expect(await tokens.use(echo)).toBe("access-1");
  expect(world.oauth.refreshed).toEqual(["refresh-1"]);
  world.now += LIFE_MS;
  expect(await outcomeOf(next.tokens.use(echo))).toBe("unauthorized");
  expect(world.oauth.refreshed).toEqual(["refresh-1", "refresh-1"]);
  const last = (await Array.fromAsync(world.eventLog.store.read())).at(-1);
  expect(last?.data).toMatchObject({
    dead: true,
    reason: "invalid_request; the answer to an earlier refresh was lost before it could be stored",
  });
});

test("a refresh that certainly was not executed leaves the refresh token in no doubt", async () => {
  const { world, first } = await linked();
  world.oauth.faults.push(new OAuthError("unavailable", "the connection was refused"));
  expect(await first.tokens.use(echo)).toBe("access-1");
  expect(await first.tokens.use(echo)).toBe("access-2");
});

test("a late answer restores a grant that another process found dead", async () => {
  const { world, first } = await linked();
  const late = await standStillInRefresh(world, first, true);
  const other = await world.start();
  world.now += LIFE_MS;
  expect(await outcomeOf(other.tokens.use(echo))).toBe("unauthorized");
  late.answer();
  expect(await late.used).toBe("access-2");
  expect(first.projector.state("account").authorized).toBe(true);
  expect((await first.tokens.peek())?.refreshToken).toBe("refresh-2");
});

test("a late answer after an unlinking is not stored", async () => {
  const { world, first } = await linked();
  const late = await standStillInRefresh(world, first, true);
  const other = await world.start();
  world.now += LEASE_MS;
  await unlink(world, other);
  late.answer();
  expect(await late.used).toBe("unauthorized");
  expect(await first.tokens.peek()).toBeUndefined();
  expect(await world.types()).toEqual(["AccountAuthorized", "AccountUnlinked"]);
});

/** Starts a process that freezes while it holds the lease, before it sends the refresh token to X. */
async function standStillBeforeRefresh(world: AccountHarness) {
  const goOn = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  const { store } = world.eventLog;
  const head = async () => {
    reached.resolve();
    await goOn.promise;
    return store.head();
  };
  const slow = await world.start({ eventLog: { ...world.eventLog, store: { ...store, head } } });
  const used = outcomeOf(slow.tokens.use(echo));
  await reached.promise;
  slow.freeze();
  world.now += LEASE_MS;
  return {
    slow,
    used,
    goOn(): void {
      slow.thaw();
      goOn.resolve();
    },
  };
}

test("a suspended process does not reuse a refresh token that another has used", async () => {
  const { world, first } = await linked();
  const { slow, used, goOn } = await standStillBeforeRefresh(world);
  expect(await first.tokens.use(echo)).toBe("access-2");
  goOn();
  expect(await used).toBe("access-2");
  expect(world.oauth.refreshed).toEqual(["refresh-1"]);
  expect(await slow.tokens.use(echo)).toBe("access-2");
});

test("a suspended process refreshes once after it resumes", async () => {
  const { world, first } = await linked();
  const { used, goOn } = await standStillBeforeRefresh(world);
  goOn();
  expect(await used).toBe("access-2");
  expect(world.oauth.refreshed).toEqual(["refresh-1"]);
  expect(await first.tokens.use(echo)).toBe("access-2");
});

test("a suspended process waits for another that is refreshing", async () => {
  const { world, first } = await linked();
  const { used, goOn } = await standStillBeforeRefresh(world);
  const other = await standStillInRefresh(world, first, true);
  goOn();
  for (let turn = 0; turn < 100; turn++) await nextTurn();
  expect(world.oauth.refreshed).toEqual(["refresh-1"]);
  first.thaw();
  other.answer();
  expect(await other.used).toBe("access-2");
  expect(await used).toBe("access-2");
  expect(world.oauth.refreshed).toEqual(["refresh-1"]);
});

test("a suspended process leaves the tokens of a newer authorization alone", async () => {
  const { world, first } = await linked();
  const { slow, used, goOn } = await standStillBeforeRefresh(world);
  await unlink(world, first);
  await world.link(first);
  goOn();
  expect(await used).toBe("access-2");
  expect(await slow.tokens.use(echo)).toBe("access-2");
  expect(world.oauth.refreshed).toEqual([]);
});

test.each(["before", "after"])("a dead grant is announced once despite a kill %s the announcement", async (when) => {
  const { world } = await linked();
  const told = Promise.withResolvers<void>();
  const dying = await world.start({
    announce: (text, key) => {
      if (when === "after") world.announced.set(key, text);
      told.resolve();
      return new Promise(() => {});
    },
  });
  world.oauth.faults.push(new OAuthError("rejected", "no"), new OAuthError("rejected", "no"));
  void dying.tokens.use(echo);
  await told.promise;
  dying.freeze();
  const next = await world.start();
  world.now += LIFE_MS;
  expect(await outcomeOf(next.tokens.use(echo))).toBe("unauthorized");
  expect(world.announced.size).toBe(1);
});

test("a late rejection does not end a newer authorization", async () => {
  const { world, first } = await linked();
  const told = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const slow = await world.start({
    announce: () => {
      told.resolve();
      return goOn.promise;
    },
  });
  world.oauth.faults.push(new OAuthError("rejected", "no"));
  const used = outcomeOf(slow.tokens.use(echo));
  await told.promise;
  slow.freeze();
  world.now += LEASE_MS;
  await first.tokens.exclusively(() => world.link(first));
  goOn.resolve();
  expect(await used).toBe("access-2");
  expect(await world.types()).toEqual(["AccountAuthorized", "AccountAuthorized"]);
  expect(await slow.tokens.use(echo)).toBe("access-2");
});

test("each dead authorization is announced once", async () => {
  const { world, first } = await linked();
  world.oauth.faults.push(new OAuthError("rejected", "no"), new OAuthError("rejected", "no"));
  await outcomeOf(first.tokens.use(echo));
  await world.link(first, LIFE_MS);
  await outcomeOf(first.tokens.use(echo));
  await outcomeOf(first.tokens.use(echo));
  expect(world.announced.size).toBe(2);
});

test("a slow refresh keeps the lease, so that another process does not reuse the refresh token", async () => {
  const { world, first } = await linked();
  const { leases } = world.eventLog.store;
  const { acquire } = leases;
  const taken: string[] = [];
  leases.acquire = async (name, options) => {
    const lease = await acquire(name, options);
    if (lease !== undefined) taken.push(options.holder);
    return lease;
  };
  const { refresh } = world.oauth;
  world.oauth.refresh = async (token) => {
    const answer = await refresh(token);
    // Lets 30 seconds pass, as long as the slowest token request takes.
    for (let second = 0; second < 30; second += 5) {
      taken.length = 0;
      world.now += 5_000;
      while (!taken.includes("process-1")) await nextTurn();
    }
    return answer;
  };
  const other = await world.start();
  const used = await Promise.all([first.tokens.use(echo), other.tokens.use(echo)]);
  expect(used).toEqual(["access-2", "access-2"]);
  expect(world.oauth.refreshed).toEqual(["refresh-1"]);
});

test("the refresh token is not used while the vault cannot be written", async () => {
  const { world, first } = await linked();
  const { tokens } = await world.start({
    vault: {
      ...first.vault,
      async put() {
        throw new Error("database or disk is full");
      },
    },
  });
  expect(await outcomeOf(tokens.use(echo))).toBeInstanceOf(Error);
  expect(world.oauth.refreshed).toEqual([]);
  expect(await first.tokens.use(echo)).toBe("access-2");
});

/**
 * Starts a process with a faulty vault. For each attempt to store refreshed tokens, `tries` says if the vault stores
 * them, and if the process learns that or gets a fault.
 */
async function startStoring(
  world: AccountHarness,
  first: AccountProcess,
  tries: readonly (readonly ["stored" | "lost", "told" | "fault"])[],
) {
  let asked = 0;
  const process = await world.start({
    vault: {
      ...first.vault,
      async put(...given) {
        // Before X has refreshed the tokens, the process calls `put` only to record that a refresh begins. This test
        // lets that call succeed.
        const [what, how] = world.oauth.refreshed.length === 0 ? [] : (tries[asked++] ?? []);
        const isStored = what !== "lost" && (await first.vault.put(...given));
        if (how === "fault") throw new ServiceError("in_doubt", "the vault does not answer");
        return isStored;
      },
    },
  });
  return { ...process, asked: () => asked };
}

test("a new pair is stored by retries while the vault fails", async () => {
  const { world, first } = await linked();
  const lost = ["lost", "fault"] as const;
  const process = await startStoring(world, first, [lost, lost, lost]);
  expect(await process.tokens.use(echo)).toBe("access-2");
  expect((await first.tokens.peek())?.refreshToken).toBe("refresh-2");
  expect([process.asked(), world.oauth.refreshed]).toEqual([4, ["refresh-1"]]);
  expect(await world.types()).toEqual(["AccountAuthorized", "TokenRefreshed"]);
});

test("a new pair that was stored without confirmation is used and recorded", async () => {
  const { world, first } = await linked();
  const process = await startStoring(world, first, [["stored", "fault"]]);
  expect(await process.tokens.use(echo)).toBe("access-2");
  expect(await first.tokens.use(echo)).toBe("access-2");
  expect([process.asked(), world.oauth.refreshed]).toEqual([1, ["refresh-1"]]);
  expect(await world.types()).toEqual(["AccountAuthorized", "TokenRefreshed"]);
});

test("a new pair that cannot be stored is abandoned as in doubt", async () => {
  const { world, first } = await linked();
  const process = await startStoring(
    world,
    first,
    Array.from({ length: 1_000 }, () => ["lost", "fault"] as const),
  );
  expect(await outcomeOf(process.tokens.use(echo))).toBe("in_doubt");
  expect(await world.types()).toEqual(["AccountAuthorized"]);
});

test("a caller during a refresh waits for the new token", async () => {
  const { world, first } = await linked();
  const { refresh } = world.oauth;
  let later: Promise<string> | undefined;
  world.oauth.refresh = (token) => {
    later = first.tokens.use(echo);
    return refresh(token);
  };
  await first.tokens.use(echo);
  expect(await later).toBe("access-2");
});

test("a stop waits for a refresh in progress, and its answer is stored", async () => {
  const { world, first } = await linked();
  const { refresh } = world.oauth;
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  world.oauth.refresh = async (token) => {
    asked.resolve();
    await answered.promise;
    return refresh(token);
  };
  void first.tokens.use(echo);
  await asked.promise;
  const ended = first.tokens[Symbol.asyncDispose]();
  answered.resolve();
  await ended;
  expect((await first.tokens.peek())?.refreshToken).toBe("refresh-2");
});
