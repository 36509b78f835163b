import { isIP } from "node:net";
import { FormatRegistry, Type } from "@sinclair/typebox";
import { isHttpUrl } from "../config/urls.ts";

FormatRegistry.Set("ip-address", (value) => isIP(value) !== 0);
FormatRegistry.Set("http-url", isHttpUrl);
// Both become part of a stream's name, which holds no control character and no half of a surrogate pair.
// oxlint-disable-next-line no-control-regex
FormatRegistry.Set("stream-name", (value) => /^[^\u0000-\u001f\u007f-\u009f\ud800-\udfff]+$/u.test(value));

/** Unknown fields are refused: a mistyped `dry_run` must never send. */
const closed = { additionalProperties: false };

/** More than white space. */
const TEXT = "\\S";

export const runBody = Type.Object({ dry_run: Type.Optional(Type.Boolean()) }, closed);

/** For what takes no field at all. */
export const emptyBody = Type.Object({}, closed);

export const notifyBody = Type.Object(
  {
    message: Type.String({ minLength: 1, maxLength: 4000, pattern: TEXT }),
    service: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
    level: Type.Optional(Type.RegExp(/^(debug|info|success|warning|warn|error|err|critical|fatal)$/i)),
  },
  closed,
);

export const trackingBody = Type.Object(
  {
    event: Type.String({ minLength: 1, maxLength: 64 }),
    domain: Type.String({ maxLength: 253, format: "stream-name" }),
    short_code: Type.String({ maxLength: 128, format: "stream-name" }),
    original_url: Type.String({ maxLength: 4096, format: "http-url" }),
    ip: Type.Optional(Type.String({ format: "ip-address" })),
    user_agent: Type.Optional(Type.String({ maxLength: 1024 })),
  },
  closed,
);

export const messagingBody = Type.Object(
  { text: Type.String({ minLength: 1, maxLength: 4096, pattern: TEXT }) },
  closed,
);

export const signInBody = Type.Object({ token: Type.String({ maxLength: 1024 }) }, closed);
