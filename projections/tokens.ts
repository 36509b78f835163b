import type { Projection } from "./projection.ts";

/** Token id -> the last UTC day on which the token was used. */
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
