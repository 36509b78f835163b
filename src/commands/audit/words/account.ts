import type { DataOf } from "../../../../events/catalog.ts";
import { nameOf, quoted } from "./phrases.ts";

/** What is told of the social account that messages are sent from. */
export const ACCOUNT_WORDS = {
  AccountAuthorized: ({ user, scopes, expires_at }: DataOf<"AccountAuthorized">) =>
    `the account ${nameOf(user)} was linked with the scopes ${scopes.join(" ")}; its access token lasts until ${expires_at}`,
  TokenRefreshed: ({ user_id, expires_at }: DataOf<"TokenRefreshed">) =>
    `the access token of account ${user_id} was renewed and lasts until ${expires_at}`,
  TokenRefreshFailed: ({ user_id, reason, dead }: DataOf<"TokenRefreshFailed">) =>
    `the access token of account ${user_id} could not be renewed: ${quoted(reason)}` +
    (dead ? "; the grant is dead, and a person has to authorize again" : ""),
  AccountUnlinked: ({ user_id, revoked }: DataOf<"AccountUnlinked">) =>
    `the account ${user_id} was unlinked; ` +
    (revoked ? "the network revoked its tokens" : "the network did not confirm that its tokens are revoked"),
};
