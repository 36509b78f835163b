import type { Projection } from "./projection.ts";

/** Social account that the service may act for. Its tokens are not in this state but in the vault. */
export interface Account {
  user: { id: string; username: string; name: string } | null;
  scopes: string[];
  /**
   * True if the service may act for the account. False if no account is linked, or if its authorization is no longer
   * valid; in that case only the same user may authorize again.
   */
  authorized: boolean;
}

export const account: Projection<Account> = {
  name: "account",
  version: 1,
  types: ["AccountAuthorized", "TokenRefreshed", "TokenRefreshFailed", "AccountUnlinked"],
  initial: () => ({ user: null, scopes: [], authorized: false }),
  evolve(state, event) {
    if (event.type === "AccountAuthorized") {
      return { user: event.data.user, scopes: event.data.scopes, authorized: true };
    }
    if (event.type === "AccountUnlinked") return account.initial();
    if (event.type === "TokenRefreshed") state.authorized = state.user !== null;
    if (event.type === "TokenRefreshFailed" && event.data.dead) state.authorized = false;
    return state;
  },
};
