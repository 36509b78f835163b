// On the memory harness.
import { expect, test } from "bun:test";
import { linkAccount, unlinkAccount, type LinkDeps } from "../../src/account/link.ts";
import { OAuthError } from "../../src/account/oauth.ts";
import { SocialError } from "../../src/networks/network.ts";
import { createSimulatedNetwork } from "../harness/memory/social-network.ts";
import { openAccount, USER, type AccountProcess, type AccountHarness } from "../harness/memory/account.ts";
import { METADATA } from "../harness/memory/log.ts";

/** Longer than the tokens' lease lasts without a renewal. */
const LEASE_MS = 15_001;

const STRANGER = { id: "2", username: "stranger", name: "Stranger" };
const authorization = { state: "s", verifier: "v" };

interface Linking {
  readonly as?: typeof USER;
  readonly pinnedHandle?: string;
}

function depsOf(
  world: AccountHarness,
  { tokens, projector }: AccountProcess,
  { as = USER, pinnedHandle }: Linking = {},
) {
  const network = { ...createSimulatedNetwork(() => world.now), me: () => Promise.resolve(as) };
  return { oauth: world.oauth, eventLog: world.eventLog, tokens, projector, network, pinnedHandle } satisfies LinkDeps;
}

const link = (deps: LinkDeps) => linkAccount(deps, new URLSearchParams(), authorization, METADATA);

test("the first account is linked, and its tokens are kept", async () => {
  await using world = await openAccount();
  const process = await world.start();
  expect(await link(depsOf(world, process))).toEqual({ kind: "linked", user: USER, scopes: ["dm.write"] });
  expect(process.projector.state("account")).toEqual({ user: USER, scopes: ["dm.write"], authorized: true });
  expect((await process.tokens.peek())?.accessToken).toBe("access-1");
});

test("another account is refused, its tokens are revoked, and the linked one stays", async () => {
  await using world = await openAccount();
  const process = await world.start();
  await link(depsOf(world, process));
  expect(await link(depsOf(world, process, { as: STRANGER }))).toEqual({ kind: "wrong_account" });
  expect(world.oauth.revoked).toEqual(["refresh-2", "access-2"]);
  expect((await process.tokens.peek())?.accessToken).toBe("access-1");
  expect(process.projector.state("account").user).toEqual(USER);
  expect(await world.types()).toEqual(["AccountAuthorized"]);
});

test("the same account may authorize again, also after it was renamed", async () => {
  await using world = await openAccount();
  const process = await world.start();
  await link(depsOf(world, process));
  const renamed = { ...USER, username: "renamed" };
  expect(await link(depsOf(world, process, { as: renamed }))).toMatchObject({ kind: "linked", user: renamed });
  expect((await process.tokens.peek())?.accessToken).toBe("access-2");
});

test("with a pinned handle no other account may be the first, whatever its case", async () => {
  await using world = await openAccount();
  const process = await world.start();
  const pinnedHandle = "WE";
  expect(await link(depsOf(world, process, { as: STRANGER, pinnedHandle }))).toEqual({ kind: "wrong_account" });
  expect(world.oauth.revoked).toEqual(["refresh-1", "access-1"]);
  expect(await process.tokens.peek()).toBeUndefined();
  expect(await link(depsOf(world, process, { pinnedHandle }))).toMatchObject({ kind: "linked" });
});

test("tokens of which the network does not say whose they are are revoked, and nothing is stored", async () => {
  await using world = await openAccount();
  const process = await world.start();
  const down = new SocialError("unavailable", "told so");
  const deps = depsOf(world, process);
  const failing = { ...deps, network: { ...deps.network, me: () => Promise.reject(down) } };
  expect(await link(failing).catch((fault: unknown) => fault)).toBe(down);
  expect(world.oauth.revoked).toEqual(["refresh-1", "access-1"]);
  expect(await process.tokens.peek()).toBeUndefined();
  expect(await world.types()).toEqual([]);
});

test("two strangers who arrive at once with the owner do not get in between", async () => {
  await using world = await openAccount();
  const [one, other] = [await world.start(), await world.start()];
  const linked = await Promise.all([link(depsOf(world, one)), link(depsOf(world, other, { as: STRANGER }))]);
  expect(linked.map(({ kind }) => kind).sort()).toEqual(["linked", "wrong_account"]);
  expect(await world.types()).toEqual(["AccountAuthorized"]);
});

test("unlinking revokes and deletes the tokens; then any account may be linked", async () => {
  await using world = await openAccount();
  const process = await world.start();
  await link(depsOf(world, process));
  expect(await unlinkAccount(depsOf(world, process), METADATA)).toEqual({ revoked: true });
  expect(world.oauth.revoked).toEqual(["refresh-1", "access-1"]);
  expect(await process.tokens.peek()).toBeUndefined();
  expect(process.projector.state("account")).toEqual({ user: null, scopes: [], authorized: false });
  expect(await unlinkAccount(depsOf(world, process), METADATA)).toBeUndefined();
  expect(await link(depsOf(world, process, { as: STRANGER }))).toMatchObject({ kind: "linked" });
});

test("unlinking goes through where the network cannot be asked, says so, and tries both tokens", async () => {
  await using world = await openAccount();
  const process = await world.start();
  await link(depsOf(world, process));
  world.oauth.faults.push(new OAuthError("unavailable", "down"));
  expect(await unlinkAccount(depsOf(world, process), METADATA)).toEqual({ revoked: false });
  expect(world.oauth.revoked).toEqual(["refresh-1", "access-1"]);
  expect(await process.tokens.peek()).toBeUndefined();
  expect(await world.types()).toEqual(["AccountAuthorized", "AccountUnlinked"]);
});

test("a process that has not yet seen an unlinking beside it does not refuse the next account", async () => {
  await using world = await openAccount();
  const [service, command] = [await world.start(), await world.start()];
  await link(depsOf(world, service));
  await unlinkAccount(depsOf(world, command), METADATA);
  const { projector } = service;
  let hasCaughtUp = false;
  const lagging: AccountProcess = {
    ...service,
    projector: {
      ...projector,
      state: ((name) =>
        hasCaughtUp ? projector.state(name) : { user: USER, scopes: [], authorized: true }) as typeof projector.state,
      async until(position) {
        await projector.until(position);
        hasCaughtUp = true;
      },
    },
  };
  expect(await link(depsOf(world, lagging, { as: STRANGER }))).toMatchObject({ kind: "linked" });
});

test("an unlinking that stood still while the account was authorized again leaves the new grant alone, and says so", async () => {
  await using world = await openAccount();
  const [slow, other] = [await world.start(), await world.start()];
  await link(depsOf(world, slow));
  const asked = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const deps = depsOf(world, slow);
  const revoke = async (): Promise<void> => {
    asked.resolve();
    await goOn.promise;
  };
  const unlinked = unlinkAccount({ ...deps, oauth: { ...deps.oauth, revoke } }, METADATA).catch(
    (fault: unknown) => fault,
  );
  await asked.promise;
  slow.freeze();
  world.now += LEASE_MS;
  await link(depsOf(world, other));
  goOn.resolve();
  expect(await unlinked).toMatchObject({ kind: "unavailable" });
  expect((await other.tokens.peek())?.accessToken).toBe("access-2");
  expect(await world.types()).toEqual(["AccountAuthorized", "AccountAuthorized"]);
});

test("an authorization that meets with a refresh beside it replaces the tokens whatever their version is by then", async () => {
  await using world = await openAccount();
  const first = await world.start();
  await link(depsOf(world, first));
  let races = 1;
  const racing = await world.start({
    vault: {
      ...first.vault,
      async put(name, value, expected) {
        // Stores the other process's refresh first, once.
        if (races-- > 0) await first.vault.put(name, (await first.vault.get(name))?.value ?? "", expected);
        return first.vault.put(name, value, expected);
      },
    },
  });
  expect(await link(depsOf(world, racing))).toMatchObject({ kind: "linked" });
  expect((await first.tokens.peek())?.accessToken).toBe("access-2");
});
