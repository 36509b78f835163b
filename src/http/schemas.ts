import { isIP } from "node:net";
import { FormatRegistry, Type } from "@sinclair/typebox";
import { normalizedUrl } from "./link-url.ts";

FormatRegistry.Set("ip-address", (value) => isIP(value) !== 0);
FormatRegistry.Set("http-url", (value) => normalizedUrl(value) !== undefined);

/** Unknown fields are refused: a mistyped `dry_run` must never send. */
const closed = { additionalProperties: false };

/** More than white space. */
const TEXT = "\\S";

/** Both become part of a stream's name, which holds no control character. */
const IN_A_STREAM_NAME = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$";

const LEVELS = ["debug", "info", "success", "warning", "warn", "error", "err", "critical", "fatal"];

/** A pattern for a word in any case: patterns of JSON Schema have no flags. */
const inAnyCase = (word: string): string => word.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);

export const runBody = Type.Object(
  { dry_run: Type.Optional(Type.Boolean({ description: "Say what a run would do, and send nothing." })) },
  closed,
);

/** For what takes no field at all. */
export const emptyBody = Type.Object({}, closed);

export const notifyBody = Type.Object(
  {
    message: Type.String({ minLength: 1, maxLength: 4000, pattern: TEXT, examples: ["disk full"] }),
    service: Type.Optional(Type.String({ minLength: 1, maxLength: 100, examples: ["web-1"] })),
    level: Type.Optional(Type.String({ pattern: `^(${LEVELS.map(inAnyCase).join("|")})$`, examples: LEVELS })),
  },
  closed,
);

export const trackingBody = Type.Object(
  {
    event: Type.String({ minLength: 1, maxLength: 64, examples: ["click"] }),
    domain: Type.String({ maxLength: 253, pattern: IN_A_STREAM_NAME, examples: ["go.example"] }),
    short_code: Type.String({ maxLength: 128, pattern: IN_A_STREAM_NAME, examples: ["spring"] }),
    original_url: Type.String({
      maxLength: 4096,
      format: "http-url",
      description: "Whatever a browser takes for an absolute http or https URL (WHATWG), a raw space too.",
      examples: ["https://shop.example/?utm_source=dm", "http://shop.example"],
    }),
    ip: Type.Optional(
      Type.String({
        format: "ip-address",
        description: "Of the person who clicked; IPv4 or IPv6.",
        examples: ["192.0.2.1", "2001:db8::1"],
      }),
    ),
    user_agent: Type.Optional(
      Type.String({
        maxLength: 1024,
        examples: ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"],
      }),
    ),
  },
  closed,
);

export const messagingBody = Type.Object(
  { text: Type.String({ minLength: 1, maxLength: 4096, pattern: TEXT, examples: ["hello"] }) },
  closed,
);

export const signInBody = Type.Object({ token: Type.String({ maxLength: 1024, examples: ["not-a-token"] }) }, closed);
