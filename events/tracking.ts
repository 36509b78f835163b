import { Type } from "@sinclair/typebox";
import { clickChannel } from "./channel.ts";
import { defineEvent } from "./event.ts";
import { ERASED, withPersonal } from "./encryption.ts";

/**
 * `channels`: those configured when the click was accepted; it is dispatched to exactly these. `probe`: a request that no
 * person made, told by its method or headers; such a click is a bot's. `anonymous`: the visitor asked not to be tracked
 * (Sec-GPC or DNT), so neither address nor user agent is recorded. `visitor`: where the visitor falls in the link's sketch
 * of today, which tells visitors apart in number only.
 */
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
      probe: Type.Optional(Type.Union([Type.Literal("head"), Type.Literal("prefetch")])),
      anonymous: Type.Optional(Type.Literal(true)),
      visitor: Type.Optional(Type.Integer()),
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

/**
 * A short link: the redirect answers `code` with `target`. `template`, its name, and `variant`: of the messages that hold
 * it; absent: an operator added it.
 */
export const LinkAdded = defineEvent(
  "LinkAdded",
  Type.Object(
    {
      domain: Type.String(),
      code: Type.String(),
      target: Type.String(),
      template: Type.Optional(Type.String()),
      template_name: Type.Optional(Type.String()),
      variant: Type.Optional(Type.String()),
    },
    { additionalProperties: false },
  ),
);

/**
 * The click appended right before this one came by a recipient's own link. A key of its own encrypts it, so that the
 * clicks of a recipient can be erased and the rest of their history kept; its ciphertext does not say whose it is.
 */
export const PersonalLinkClicked = withPersonal(
  defineEvent("PersonalLinkClicked", Type.Object({ code: Type.String() }, { additionalProperties: false })),
  {
    owner: ({ code }: { code: string }) => personalLinkOwner(code),
    members: ["code"],
    inFolds: true,
    erased: () => ({ code: ERASED }),
  },
);

/** Whose keys encrypt the clicks on a personal link. */
export function personalLinkOwner(code: string) {
  return { kind: "person", id: `link:${code}`, isUnlinkable: true } as const;
}
