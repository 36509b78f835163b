import { CHANNELS, type ChannelName } from "../../events/channel.ts";
import { errorFields } from "../platform/logger.ts";
import { untilAborted } from "../platform/signals.ts";
import type { EventLog } from "./event-log.ts";
import { takeLease, type HeldLease, type LeaseDeps, type LeaseTerms } from "./lease.ts";

export interface RolesDeps extends LeaseDeps {
  readonly holder: string;
  /** No other instance can have the log open: another holder of a lease is dead. */
  readonly isAlone: boolean;
}

export type RoleTerms = Pick<LeaseTerms, "name" | "ttlMs" | "renewMs">;

/** What one instance does for all, until it ends or another takes over. */
export interface Role extends AsyncDisposable {
  readonly isHeld: boolean;
}

export type Roles = ReturnType<typeof createRoles>;

export const ROLES = {
  dispatcher: (channel: ChannelName) => `dispatcher-${channel}`,
  run: "run",
  tokens: "account-tokens",
  retention: "retention",
  signedHeads: "signed-heads",
} as const;

/** The instance that has it, by each role that one has now. */
export async function listHolders({ store }: EventLog): Promise<Readonly<Record<string, string>>> {
  const { dispatcher, ...others } = ROLES;
  const held = await store.leases.list([...CHANNELS.map(dispatcher), ...Object.values(others)]);
  // Each run is a holder of its own on its instance.
  return Object.fromEntries(held.map(({ name, holder }) => [name, holder.split("/")[0] ?? holder]));
}

/**
 * How often those who wait ask: a read for the log, and so late is a role taken that was given up, or that was free when a
 * log that refused the lease is writable again.
 */
const ASK_MS = 1_000;

/** How soon what could not begin is tried again. */
const AFTER_FAULT_MS = 10_000;

/** Terms of what does no harm where two do it at a time, after one of them stood still. */
export const HARMLESS = { ttlMs: 60_000, renewMs: 20_000 };

export function createRoles(deps: RolesDeps) {
  const { holder, isAlone, sleep, logger, leaseScale = 1 } = deps;
  return {
    /**
     * `begin` is called each time this instance takes over, and what it answers is disposed before another may begin.
     * Resolves once that was tried; where another has the role, or the log refuses the lease, it is tried again until
     * the role is disposed.
     */
    async start(terms: RoleTerms, begin: (lease: HeldLease) => Promise<Disposable | AsyncDisposable>): Promise<Role> {
      const { name } = terms;
      const stopping = new AbortController();
      let askMs = ASK_MS;
      let isRefused = false;

      /** Undefined while another holds it, or the log refuses it: of one that does so for long, it is said once. */
      const ask = async (steal: boolean): Promise<HeldLease | undefined> => {
        try {
          const lease = await takeLease(deps, { ...terms, holder, steal });
          isRefused = false;
          return lease;
        } catch (fault) {
          if (!isRefused) logger.error("a role could not be asked for", { role: name, ...errorFields(fault) });
          isRefused = true;
          return undefined;
        }
      };

      const take = async (steal: boolean): Promise<(AsyncDisposable & Pick<HeldLease, "lost">) | undefined> => {
        askMs = ASK_MS;
        const lease = await ask(steal);
        if (lease === undefined) return undefined;
        try {
          await using taking = new AsyncDisposableStack();
          taking.use(lease);
          taking.use(await begin(lease));
          const taken = taking.move();
          return { lost: lease.lost, [Symbol.asyncDispose]: () => taken.disposeAsync() };
        } catch (fault) {
          logger.error("a role could not begin", { role: name, ...errorFields(fault) });
          askMs = AFTER_FAULT_MS;
          return undefined;
        }
      };

      let held = await take(isAlone);
      const goOn = async (): Promise<void> => {
        for (;;) {
          if (held === undefined) await sleep(askMs * leaseScale, stopping.signal);
          else await untilAborted(AbortSignal.any([held.lost, stopping.signal]));
          const { aborted: isStopping } = stopping.signal;
          if (held !== undefined) {
            if (!isStopping) logger.warn("another instance took a role over", { role: name });
            await held[Symbol.asyncDispose]();
            held = undefined;
          }
          if (isStopping) return;
          held ??= await take(false);
          if (held !== undefined) logger.info("took a role over", { role: name });
        }
      };
      const going = goOn();
      return {
        get isHeld() {
          return held !== undefined && !held.lost.aborted;
        },
        async [Symbol.asyncDispose]() {
          stopping.abort();
          await going;
        },
      };
    },
  };
}
