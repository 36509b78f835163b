import type { Projection } from "./projection.ts";

/** Last UTC day on which each API token was used, by the token's id. */
export interface Tokens {
  readonly usedOn: Map<string, string>;
}

export const tokens: Projection<Tokens> = {
  name: "tokens",
  version: 1,
  types: ["TokenUsed"],
  initial: () => ({ usedOn: new Map() }),
  evolve(state, event) {
    if (event.type !== "TokenUsed") return state;
    const { token_id, day } = event.data;
    if (day > (state.usedOn.get(token_id) ?? "")) state.usedOn.set(token_id, day);
    return state;
  },
};
