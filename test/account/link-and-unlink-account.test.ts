// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { linkAccount, unlinkAccount, type Account } from "../../src/account/link-and-unlink-account.ts";
import { OAuthError } from "../../src/account/oauth.ts";
import { SocialError } from "../../src/networks/network.ts";
import { createSimulatedNetwork } from "../harness/in-process/social-network.ts";
import {
  openAccount,
  USER,
  type AccountProcess,
  type AccountHarness,
} from "../harness/in-process/simulated-oauth-account.ts";
import { METADATA, toStateContext } from "../harness/in-process/temporary-log.ts";

/** Time after which an instance's lease on the tokens has expired if it was not renewed. */
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
  const account: Account = { oauth: world.oauth, tokens, network, pinnedHandle };
  return { context: toStateContext({ eventLog: world.eventLog, projector }), account };
}

type Deps = ReturnType<typeof depsOf>;
const link = ({ context, account }: Deps) =>
  linkAccount(context, account, new URLSearchParams(), authorization, METADATA);
const unlink = ({ context, account }: Deps) => unlinkAccount(context, account, METADATA);

test("the first account is linked, and its tokens are stored", async () => {
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

test("only the account with the pinned handle can be linked, regardless of case", async () => {
  await using world = await openAccount();
  const process = await world.start();
  const pinnedHandle = "WE";
  expect(await link(depsOf(world, process, { as: STRANGER, pinnedHandle }))).toEqual({ kind: "wrong_account" });
  expect(world.oauth.revoked).toEqual(["refresh-1", "access-1"]);
  expect(await process.tokens.peek()).toBeUndefined();
  expect(await link(depsOf(world, process, { pinnedHandle }))).toMatchObject({ kind: "linked" });
});

test("tokens are revoked and not stored if the network does not name their account", async () => {
  await using world = await openAccount();
  const process = await world.start();
  const down = new SocialError("unavailable", "told so");
  const deps = depsOf(world, process);
  const network = { ...deps.account.network, me: () => Promise.reject(down) };
  const failing = { ...deps, account: { ...deps.account, network } };
  expect(await link(failing).catch((fault: unknown) => fault)).toBe(down);
  expect(world.oauth.revoked).toEqual(["refresh-1", "access-1"]);
  expect(await process.tokens.peek()).toBeUndefined();
  expect(await world.types()).toEqual([]);
});

test("only one of two concurrent accounts is linked", async () => {
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
  expect(await unlink(depsOf(world, process))).toEqual({ revoked: true });
  expect(world.oauth.revoked).toEqual(["refresh-1", "access-1"]);
  expect(await process.tokens.peek()).toBeUndefined();
  expect(process.projector.state("account")).toEqual({ user: null, scopes: [], authorized: false });
  expect(await unlink(depsOf(world, process))).toBeUndefined();
  expect(await link(depsOf(world, process, { as: STRANGER }))).toMatchObject({ kind: "linked" });
});

test("unlinking succeeds during an outage, tries both tokens, and reports the failed revocation", async () => {
  await using world = await openAccount();
  const process = await world.start();
  await link(depsOf(world, process));
  world.oauth.faults.push(new OAuthError("unavailable", "down"));
  expect(await unlink(depsOf(world, process))).toEqual({ revoked: false });
  expect(world.oauth.revoked).toEqual(["refresh-1", "access-1"]);
  expect(await process.tokens.peek()).toBeUndefined();
  expect(await world.types()).toEqual(["AccountAuthorized", "AccountUnlinked"]);
});

test("a lagging process accepts the next account after an unlinking by another process", async () => {
  await using world = await openAccount();
  const [service, command] = [await world.start(), await world.start()];
  await link(depsOf(world, service));
  await unlink(depsOf(world, command));
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

test("a suspended unlinking leaves a newer grant alone, and fails", async () => {
  await using world = await openAccount();
  const [slow, other] = [await world.start(), await world.start()];
  await link(depsOf(world, slow));
  const asked = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const revoke = async (): Promise<void> => {
    asked.resolve();
    await goOn.promise;
  };
  const { context, account } = depsOf(world, slow);
  const revoking = { ...account, oauth: { ...account.oauth, revoke } };
  const unlinked = unlinkAccount(context, revoking, METADATA).catch((fault: unknown) => fault);
  await asked.promise;
  slow.freeze();
  world.now += LEASE_MS;
  await link(depsOf(world, other));
  goOn.resolve();
  expect(await unlinked).toMatchObject({ kind: "unavailable" });
  expect((await other.tokens.peek())?.accessToken).toBe("access-2");
  expect(await world.types()).toEqual(["AccountAuthorized", "AccountAuthorized"]);
});

test("an authorization replaces the tokens despite a concurrent refresh", async () => {
  await using world = await openAccount();
  const first = await world.start();
  await link(depsOf(world, first));
  let races = 1;
  const racing = await world.start({
    vault: {
      ...first.vault,
      async put(name, value, expected) {
        // Before this process first writes to the vault, another process writes there, as if it had stored the tokens
        // of its refresh.
        if (races-- > 0) await first.vault.put(name, (await first.vault.get(name))?.value ?? "", expected);
        return first.vault.put(name, value, expected);
      },
    },
  });
  expect(await link(depsOf(world, racing))).toMatchObject({ kind: "linked" });
  expect((await first.tokens.peek())?.accessToken).toBe("access-2");
});
