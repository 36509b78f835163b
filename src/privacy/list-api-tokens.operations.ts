import { Type } from "@sinclair/typebox";
import type { Tokens } from "../../projections/token-use.ts";
import { SCOPE_NAMES, toLastDay, toTokenId, type SourcedToken } from "../config/parse-api-tokens.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { oneOf, orNull, text, time } from "../platform/common-schemas.ts";
import { countInWords } from "../platform/format-numbers-and-lists.ts";
import { operation } from "../platform/operation.ts";
import { ServiceError } from "../platform/service-error.ts";
import type { LogReader } from "../projector/operation-states-as-of.ts";

export interface TokenReader {
  readonly at: LogReader["at"];
  /** Returns the API tokens in force. */
  tokens(): readonly SourcedToken[];
}

export const listTokens = operation({
  name: "token list",
  id: "listTokens",
  tag: "service",
  access: ["session", "read"],
  summary: "List the tokens: what each may do, its expiry and its last use.",
  description:
    "The callers' tokens of API_TOKENS and of API_TOKENS_FILE. The last use is a day of UTC; it is unknown while the log cannot be read.",
  personalRead: false,
  input: {},
  output: {
    tokens: Type.Array(
      Type.Object({
        name: text("shop"),
        id: Type.String({ description: "The first digits of the token's SHA-256.", examples: ["3f2a9c0b1d4e"] }),
        scopes: orNull(
          Type.Array(oneOf(...SCOPE_NAMES), { description: "Null: its entry names none, so it may do everything." }),
        ),
        links: orNull(Type.Array(text("go.example"), { description: "The only domains whose clicks it records." })),
        expires: orNull(time),
        last_used: orNull(text("2026-11-21")),
        source: oneOf("API_TOKENS", "API_TOKENS_FILE"),
      }),
    ),
    last_uses: Type.Union([Type.Literal("known"), Type.Literal("unknown")], {
      description: "`unknown`: the log cannot be read, so each `last_used` is null.",
    }),
  },
  isLogOptional: true,
  async run({ at, tokens }: TokenReader) {
    const usedOn = await readLastUses(at);
    return {
      tokens: tokens().map(({ name, sha256, scopes, links, expiresAt, source }) => ({
        name,
        id: toTokenId(sha256),
        scopes: scopes === undefined ? null : [...scopes],
        links: links === undefined ? null : [...links],
        expires: expiresAt === undefined ? null : isoTime(expiresAt),
        last_used: usedOn?.get(toTokenId(sha256)) ?? null,
        source,
      })),
      last_uses: usedOn === undefined ? ("unknown" as const) : ("known" as const),
    };
  },
  table({ tokens, last_uses }) {
    if (tokens.length === 0) return undefined;
    const never = last_uses === "unknown" ? "unknown" : "never";
    const rows = tokens.map(({ name, id, scopes, links, expires, last_used, source }) => {
      const names = scopes === null || scopes.length === SCOPE_NAMES.length ? "all" : scopes.join("+");
      const may = links === null ? names : `${names} of ${links.join("+")}`;
      return [name, id, may, expires === null ? "never" : toLastDay(Date.parse(expires)), last_used ?? never, source];
    });
    return { head: ["name", "id", "scopes", "expires", "last used", "in"], rows };
  },
  text: ({ tokens }) =>
    tokens.length === 0 ? "no token is configured\n" : `(${countInWords(tokens.length, "token")})\n`,
  examples: ["", "--json"],
});

/** Returns the day on which each API token was last used, by the token's id; undefined if the log cannot be read. */
async function readLastUses(at: LogReader["at"]): Promise<Tokens["usedOn"] | undefined> {
  try {
    return (await at(undefined, "tokens")).states.tokens.usedOn;
  } catch (fault) {
    if (!(fault instanceof ServiceError)) throw fault;
    return fault.kind === "not_found" ? new Map() : undefined;
  }
}
