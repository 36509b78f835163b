import { Type } from "@sinclair/typebox";
import { clickChannel } from "./channel.ts";
import { defineEvent } from "./event.ts";
import { ERASED, withPersonal } from "./encryption.ts";

/** `channels`: those configured when the click was accepted; it is dispatched to exactly these. */
const linkClicked = defineEvent(
  "LinkClicked",
  Type.Object(
    {
      event: Type.String(),
      domain: Type.String(),
      short_code: Type.String(),
      original_url: Type.String(),
      /** What a browser makes of it; absent: the same. */
      normalized_url: Type.Optional(Type.String()),
      ip: Type.Optional(Type.String()),
      user_agent: Type.Optional(Type.String()),
      bot: Type.Boolean(),
      channels: Type.Array(clickChannel),
    },
    { additionalProperties: false },
  ),
);

export const LinkClicked = withPersonal(linkClicked, {
  owner: ({ ip }: { ip?: string }) => ({ kind: "click", ip }),
  members: ["ip", "user_agent"],
  shortened: { original_url: withoutVisitor, normalized_url: withoutVisitor },
  inFolds: false,
  erased: () => ({ ip: ERASED, user_agent: ERASED }),
});

/**
 * The address without what may identify who visits it: credentials, query and fragment. Browsers take spaces before it,
 * and any number of slashes in either direction.
 */
function withoutVisitor(url: string): string {
  const end = url.search(/[?#]/);
  const address = end === -1 ? url : url.slice(0, end);
  return address.includes("@") ? address.replace(/^( *[a-z]+:[\\/]*)[^\\/]*@/i, "$1") : address;
}
