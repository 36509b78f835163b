import { Type } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";

/** A user of the social network; ids are decimal strings, too long for a number. */
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

/** `dead`: the grant is gone, and the account must be authorized again. */
export const TokenRefreshFailed = defineEvent(
  "TokenRefreshFailed",
  Type.Object({ user_id: Type.String(), reason: Type.String(), dead: Type.Boolean() }, closed),
);

/** `revoked`: the network confirmed that the tokens no longer work. */
export const AccountUnlinked = defineEvent(
  "AccountUnlinked",
  Type.Object({ user_id: Type.String(), revoked: Type.Boolean() }, closed),
);
