import type { HeldLease, Roles } from "../../../src/log/leases-and-roles.ts";

/** Fake lease that is never lost, because no other instance competes for it. The log does not know it. */
const ALONE: HeldLease = {
  token: 1,
  lost: new AbortController().signal,
  lasts: () => true,
  keep: async () => () => true,
  fenced: (append) => append({}),
  async [Symbol.asyncDispose]() {},
};

/** Fake roles of an instance that holds each one for its whole life. */
export const ALL_ROLES: Roles = {
  async start(_terms, begin) {
    const stack = new AsyncDisposableStack();
    stack.use(await begin(ALONE));
    return { isHeld: true, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  },
};
