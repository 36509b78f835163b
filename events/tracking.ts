import { Type } from "@sinclair/typebox";
import { channelName } from "./channel.ts";
import { defineEvent } from "./event.ts";

/** `channels`: those configured when the click was accepted; exactly these are owed a dispatch. */
export const LinkClicked = defineEvent(
  "LinkClicked",
  Type.Object(
    {
      event: Type.String(),
      domain: Type.String(),
      short_code: Type.String(),
      original_url: Type.String(),
      ip: Type.Optional(Type.String()),
      user_agent: Type.Optional(Type.String()),
      bot: Type.Boolean(),
      channels: Type.Array(channelName),
    },
    { additionalProperties: false },
  ),
);
