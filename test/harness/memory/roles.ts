import type { HeldLease, Roles } from "../../../src/log/lease.ts";

/** A lease that no other instance ever wants; the log does not know of it. */
const ALONE: HeldLease = {
  token: 1,
  lost: new AbortController().signal,
  lasts: () => true,
  keep: async () => () => true,
  fenced: (append) => append({}),
  async [Symbol.asyncDispose]() {},
};

/** Of an instance that has every role for as long as it lives. */
export const ALL_ROLES: Roles = {
  async start(_terms, begin) {
    const stack = new AsyncDisposableStack();
    stack.use(await begin(ALONE));
    return { isHeld: true, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  },
};
