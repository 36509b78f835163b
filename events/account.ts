import { Type } from "@sinclair/typebox";
import { defineEvent } from "./define-event.ts";

/** User of the social network. The id is a decimal string, because ids are too long for a number. */
const user = Type.Object({
  id: Type.String(),
  username: Type.String(),
  name: Type.String(),
});

const closed = { additionalProperties: false };

export const AccountAuthorized = defineEvent(
  "AccountAuthorized",
  Type.Object({ user, scopes: Type.Array(Type.String()), expires_at: Type.String() }, closed),
);

export const TokenRefreshed = defineEvent(
  "TokenRefreshed",
  Type.Object({ user_id: Type.String(), expires_at: Type.String() }, closed),
);

/**
 * Event: a refresh of the account's tokens failed. `dead`: the user's authorization is gone, and the account must be
 * authorized again.
 */
export const TokenRefreshFailed = defineEvent(
  "TokenRefreshFailed",
  Type.Object({ user_id: Type.String(), reason: Type.String(), dead: Type.Boolean() }, closed),
);

/** Event: the account was unlinked. `revoked`: the network confirmed that its tokens no longer work. */
export const AccountUnlinked = defineEvent(
  "AccountUnlinked",
  Type.Object({ user_id: Type.String(), revoked: Type.Boolean() }, closed),
);
