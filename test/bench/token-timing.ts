import { createHash } from "node:crypto";
import { compare, type Bench } from "eventstore-lite/bench";
import { createAuthentication } from "../../src/http/access/bearer-tokens.ts";

/** Two samples count as equal if Welch's t for them is at most this (dudect: Reparaz, Balasch, Verbauwhede 2017). */
const T_MAX = 4.5;

/** Share of a sample's calls that count. The slowest calls are left out, because the system interrupted them. */
const KEPT_SHARE = 0.9;

const TOKEN = "a-token-of-the-bench-0123456789";

/** Tests whether the time to reject a wrong token depends on how much of it is right. */
export const tokenTiming: Bench = async ({ quick, note }) => {
  const sha256 = createHash("sha256").update(TOKEN).digest("hex");
  const tokens = ["first", "second", "third"].map((name) => ({ name, sha256 }));
  const { identify } = createAuthentication({ tokens, authPolicy: "strict", openRoutes: [] }, Date.now);
  const guesses = {
    firstLetterWrong: `x${TOKEN.slice(1)}`,
    lastLetterWrong: `${TOKEN.slice(0, -1)}x`,
    allWrong: "y".repeat(TOKEN.length),
    againFirstLetterWrong: `x${TOKEN.slice(1)}`,
  };
  const times = sample(guesses, quick ? 20_000 : 200_000, (token) => void identify(token));
  const close = welch(times.firstLetterWrong, times.lastLetterWrong);
  const far = welch(times.allWrong, times.lastLetterWrong);
  const noise = welch(times.firstLetterWrong, times.againFirstLetterWrong);
  if (Math.max(close, far) > T_MAX) note(`the time of a wrong token depends on the token: t above ${T_MAX}`);
  return [
    compare(
      "Welch's t: the first letter of a token wrong, or the last; limit: the same guess twice",
      "t",
      [close],
      [noise],
    ),
    compare("Welch's t: all letters wrong, or the last; limit: the same guess twice", "t", [far], [noise]),
  ];
};

/** Number of first calls that do not count, because the code is compiled during them. */
const WARM_UP = 20_000;

/**
 * Measures in ns how long each call with a guessed token takes. Each call chooses its kind of guess at random, so that
 * no kind always follows the same other one.
 */
function sample<Kind extends string>(
  guesses: Readonly<Record<Kind, string>>,
  count: number,
  call: (token: string) => void,
): Record<Kind, number[]> {
  const kinds = Object.entries(guesses) as [Kind, string][];
  const times = Object.fromEntries(kinds.map(([kind]) => [kind, [] as number[]])) as Record<Kind, number[]>;
  for (let nth = -WARM_UP; nth < count * kinds.length; nth++) {
    const [kind, token] = kinds[Math.floor(Math.random() * kinds.length)] as [Kind, string];
    const startedAt = Bun.nanoseconds();
    call(token);
    const took = Bun.nanoseconds() - startedAt;
    if (nth >= 0) times[kind].push(took);
  }
  return times;
}

/** Absolute value of Welch's t of two samples without their slowest calls. */
function welch(one: readonly number[], other: readonly number[]): number {
  const [a, b] = [momentsOf(one), momentsOf(other)];
  return Math.abs(a.mean - b.mean) / Math.sqrt(a.variance / a.count + b.variance / b.count);
}

function momentsOf(sampled: readonly number[]): { count: number; mean: number; variance: number } {
  const kept = [...sampled].sort((a, b) => a - b).slice(0, Math.floor(sampled.length * KEPT_SHARE));
  const mean = kept.reduce((sum, each) => sum + each, 0) / kept.length;
  const variance = kept.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (kept.length - 1);
  return { count: kept.length, mean, variance };
}
