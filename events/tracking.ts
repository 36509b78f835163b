import { Type } from "@sinclair/typebox";
import { clickChannel } from "./channel.ts";
import { defineEvent } from "./event.ts";
import { ERASED, withPersonal } from "./encryption.ts";

const linkClicked = defineEvent(
  "LinkClicked",
  Type.Object(
    {
      event: Type.String(),
      domain: Type.String(),
      short_code: Type.String(),
      original_url: Type.String(),
      /** `original_url` as a browser normalizes it; absent if it is the same. */
      normalized_url: Type.Optional(Type.String()),
      ip: Type.Optional(Type.String()),
      user_agent: Type.Optional(Type.String()),
      bot: Type.Boolean(),
      /** The method or the headers show that no person made the request; such a click is a bot's. */
      probe: Type.Optional(Type.Union([Type.Literal("head"), Type.Literal("prefetch")])),
      /** The visitor asked not to be tracked (Sec-GPC or DNT), so neither address nor user agent is recorded. */
      anonymous: Type.Optional(Type.Literal(true)),
      /** The visitor's place in the link's sketch of that day, which counts visitors but does not identify them. */
      visitor: Type.Optional(Type.Integer()),
      /** The channels configured when the click was accepted; it is dispatched to exactly these. */
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
 * The address without the parts that may identify its visitor: credentials, query and fragment. Browsers accept leading
 * spaces, and any number of slashes in either direction.
 */
function withoutVisitor(url: string): string {
  const end = url.search(/[?#]/);
  const address = end === -1 ? url : url.slice(0, end);
  return address.includes("@") ? address.replace(/^( *[a-z]+:[\\/]*)[^\\/]*@/i, "$1") : address;
}

/**
 * A short link: the redirect answers `code` with `target`. `template`, its name, and `variant` belong to the messages
 * that contain the link; absent if an operator added it.
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
 * The click appended right before this event came by a recipient's own link. A separate key encrypts it, so that a
 * recipient's clicks can be erased and the rest of their history kept. Its ciphertext does not say whose it is.
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

/** The owner whose keys encrypt the clicks on a personal link. */
export function personalLinkOwner(code: string) {
  return { kind: "person", id: `link:${code}`, isUnlinkable: true } as const;
}
