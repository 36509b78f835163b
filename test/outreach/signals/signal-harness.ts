import type { Sandbox } from "../../../sandbox/sandbox.ts";
import { deliver } from "../../../sandbox/x/messages.ts";
import { createRoles } from "../../../src/log/leases-and-roles.ts";
import { createLineFetch, createSafeFetch } from "../../../src/networks/safe-fetch.ts";
import { createActivityStream } from "../../../src/networks/x/activity-stream.ts";
import { createX } from "../../../src/networks/x/x-api.ts";
import { secret } from "../../../src/platform/secret.ts";
import type { OutreachContext } from "../../../src/outreach/run-context.ts";
import { followSignals } from "../../../src/outreach/signals/follow-messages-and-receipts.ts";
import { openOutreach } from "../../harness/in-process/simulated-outreach-processes.ts";
import { authorized, personId } from "../../sandbox/call-simulated-x.ts";

const TERMS = { name: "signals", ttlMs: 15_000, renewMs: 5_000 };

export type SignalWorld = Awaited<ReturnType<typeof openSignals>>;

/** Opens the in-process harness with the sandbox's X, whose stream of signals its instances follow. */
export async function openSignals(sandbox: Sandbox, ...handles: readonly string[]) {
  const world = await openOutreach();
  const token = (await authorized(sandbox)).access_token;
  const options = { allowedOrigins: [sandbox.url] };
  const safeFetch = createSafeFetch(options);
  const apiUrl = sandbox.urls.xApi;
  Object.assign(world.network, createX({ apiUrl, safeFetch, clock: world.time.now }));
  const ids = handles.map((handle) => personId(sandbox, handle));
  if (ids.length > 0) await world.list(...ids);
  const own = { id: personId(sandbox, "acme_team"), username: "acme_team", name: "Acme Team" };
  await world.append([
    { type: "AccountUnlinked", data: { user_id: "1", revoked: true } },
    { type: "AccountAuthorized", data: { user: own, scopes: [], expires_at: "2027-01-01T00:00:00.000Z" } },
  ]);
  const use = <T>(call: (token: string) => Promise<T>) => call(token);
  const credentials = { use, send: use } as OutreachContext["credentials"];
  const bearer = secret(sandbox.x.appBearer);
  const lineFetch = createLineFetch(options);
  const stream = createActivityStream({ apiUrl, safeFetch, clock: world.time.now, bearer, lineFetch });
  return {
    ...world,
    own,
    /** Starts an instance that follows the stream of signals as soon as no other instance does. */
    async follow(settings: Partial<OutreachContext> = {}) {
      const instance = await world.start({ credentials, ...settings });
      const role = await createRoles(instance.context, false).start(TERMS, async (lease) =>
        followSignals({ ...instance.context, stream }, lease),
      );
      // If the instance has died, its role never ends, so the disposal stops waiting for it.
      const end = async () => Promise.race([role[Symbol.asyncDispose](), instance.dead]);
      world.use({ [Symbol.asyncDispose]: end });
      return { ...instance, role };
    },
    write: (handle: string, text: string) => deliver(sandbox.x, personId(sandbox, handle), own.id, text),
  };
}

/** Waits until a condition holds. Throws after ten seconds. */
export async function eventually(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 10_000;
  while (!(await isTrue())) {
    if (Date.now() > end) throw new Error("it never came true");
    await Bun.sleep(1);
  }
}
