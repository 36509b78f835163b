import { Type } from "@sinclair/typebox";
import { orNull, text } from "../platform/common-schemas.ts";
import { operation, refusal } from "../platform/operation.ts";
import {
  asOf,
  asOfInput,
  describeMomentJson,
  toMomentJson,
  type LogReader,
} from "../projector/operation-states-as-of.ts";
import { showOnOneLine } from "../template/show-invisible-characters.ts";
import { unlinkAccount, type Account } from "./link-and-unlink-account.ts";
import type { StateContext } from "../log/event-log.ts";

const user = Type.Object({ id: text("1786543210987654321"), username: text("acme_team"), name: text("Acme") });

export const showAccount = operation({
  name: "account show",
  id: "showAccount",
  tag: "outreach",
  access: ["session", "read"],
  summary: "Show which X account the service acts for.",
  description: "As the log knows it; `GET /social/me` asks X.",
  personalRead: false,
  input: asOfInput,
  output: {
    user: orNull(user),
    scopes: Type.Array(text("dm.write")),
    authorized: Type.Boolean({ description: "False: no account is linked, or X no longer accepts its tokens." }),
    ...asOf,
  },
  async run({ at }: LogReader, { as_of }) {
    const found = await at(as_of, "account");
    const { user: linked, scopes, authorized } = found.states.account;
    return { user: linked, scopes: [...scopes], authorized, as_of: toMomentJson(found) };
  },
  text({ user: linked, scopes, authorized, as_of }) {
    const state = authorized ? `authorized for ${scopes.join(" ")}` : "no longer authorized";
    const said =
      linked === null ? "no account is linked" : `@${linked.username} (${linked.name}, ${linked.id}): ${state}`;
    return `${showOnOneLine(said)} (${describeMomentJson(as_of)})\n`;
  },
  examples: ["--as-of 2026-11-21"],
});

interface UnlinkContext extends StateContext {
  /** The network and tokens of the X account. Undefined if X is not configured. */
  readonly account: Account | undefined;
}

export const revokeAccount = operation({
  name: "account unlink",
  id: "unlinkAccount",
  tag: "outreach",
  access: ["token", "admin"],
  summary: "Revoke the grant at X and delete the tokens.",
  description:
    "Another account may then authorize. If X does not confirm, `revoked` is false: then revoke the grant in X's settings.",
  personalRead: false,
  input: {},
  output: {
    unlinked: Type.Boolean({ description: "False: no account was linked." }),
    revoked: orNull(Type.Boolean({ description: "True: X confirmed that the tokens are revoked." })),
  },
  refusals: {
    x_not_configured: refusal("conflict", "X is not configured: X_CLIENT_ID is needed to revoke the grant."),
  },
  isSlow: true,
  async run(context: UnlinkContext, _input, caller) {
    const { account } = context;
    if (account === undefined) return "x_not_configured";
    const unlinked = await unlinkAccount(context, account, caller);
    return { unlinked: unlinked !== undefined, revoked: unlinked?.revoked ?? null };
  },
  text({ revoked }) {
    if (revoked === null) return "no account is linked";
    if (revoked) return "unlinked, and the grant is revoked";
    return "unlinked, but X did not confirm the revocation: revoke the grant in X's settings";
  },
  examples: [""],
});
