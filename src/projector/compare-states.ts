import { hideCode, isPersonalCode } from "../template/short-link.ts";
import { inTimeSlices } from "../platform/work-in-time-slices.ts";

/** Maximum number of differences that a comparison of two states lists. More would say nothing new. */
export const DIFFERENCES_MAX = 20;

/** Number of entries of a Map that are compared before other work may have a turn. */
const STEP_ENTRIES = 100;

/**
 * A place where two states of a projection differ: in a value, which is undefined if absent, or in the order of a Map's
 * entries.
 */
export interface Difference {
  /** Keys that lead from the state to the place of the difference; empty for the state itself. */
  readonly path: readonly string[];
  readonly values: { readonly before: unknown; readonly after: unknown } | "reordered";
}

/**
 * Returns how two states (JSON values and Maps) differ; empty if they are equal. The order of a Map's entries counts,
 * because folds may depend on it. Neither state may change while this runs in time slices.
 */
export async function findDifferences(
  before: unknown,
  after: unknown,
  /** True if the result lists this difference between the two states. Default: it lists all. */
  isMeant: (difference: Difference) => boolean = () => true,
): Promise<readonly Difference[]> {
  const found: Difference[] = [];
  const add = (difference: Difference) => {
    if (isMeant(difference)) found.push(withoutCodes(difference));
  };
  await inTimeSlices(compare([], before, after, { found, add }));
  return found;
}

/** Describes how a stored and a rebuilt state differ: texts with the path and both values of each difference. */
export async function differences(stored: unknown, rebuilt: unknown): Promise<readonly string[]> {
  return (await findDifferences(stored, rebuilt)).map(({ path, values }) =>
    values === "reordered"
      ? `${formatPath(path)}: stored in another order`
      : `${formatPath(path)}: stored ${formatValue(values.before)}, rebuilt ${formatValue(values.after)}`,
  );
}

/**
 * Lists the top-level members of a state in which these differences are. Unlike paths and values, they are never
 * personal.
 */
export function listMembers(found: readonly string[]): readonly string[] {
  return [...new Set(found.map((difference) => difference.split(/[.:]/, 1)[0] ?? ""))];
}

// Adds the differences between two values to `notes`. Builds paths only where the values differ, because nearly all of
// a state's many thousand entries are equal.
function* compare(path: readonly string[], stored: unknown, rebuilt: unknown, notes: Notes): Steps {
  if (Object.is(stored, rebuilt) || notes.found.length >= DIFFERENCES_MAX) return;
  if (stored instanceof Map && rebuilt instanceof Map) return yield* compareMaps(path, stored, rebuilt, notes);
  if (!isObject(stored) || !isObject(rebuilt) || stored instanceof Map || rebuilt instanceof Map) {
    notes.add({ path, values: { before: stored, after: rebuilt } });
    return;
  }
  for (const key in stored) {
    if (!same(stored[key], rebuilt[key])) yield* compare([...path, key], stored[key], rebuilt[key], notes);
  }
  for (const key in rebuilt) {
    if (!Object.hasOwn(stored, key)) yield* compare([...path, key], undefined, rebuilt[key], notes);
  }
}

/**
 * Hides the codes of recipients' own links in a difference, because readers may not see them. Codes are recognised by
 * their form.
 */
function withoutCodes({ path, values }: Difference): Difference {
  const shown = path.map(hideIfCode);
  if (values === "reordered") return { path: shown, values };
  const member = path.at(-1) ?? "";
  return { path: shown, values: { before: showValue(values.before, member), after: showValue(values.after, member) } };
}

/**
 * Matches what may be a code within a text: the address of a recipient's own link ends with its code, and a key that is
 * a JSON array holds the code between quotation marks.
 */
const MAYBE_CODE = /(?<=\/|^\[.*")[A-Za-z0-9]+(?![A-Za-z0-9])/g;

function hideIfCode(text: string): string {
  if (isPersonalCode(text)) return hideCode(text);
  if (!text.includes("/") && !text.startsWith("[")) return text;
  return text.replace(MAYBE_CODE, (one) => (isPersonalCode(one) ? hideCode(one) : one));
}

/** Members of a state whose texts may look like a link's code by chance, and contain none. */
const NAMES: ReadonlySet<string> = new Set(["username", "name"]);

function showValue(value: unknown, member: string): unknown {
  if (typeof value === "string") return NAMES.has(member) ? value : hideIfCode(value);
  if (value instanceof Map) {
    return new Map([...value].map(([key, inner]) => [showValue(key, ""), showValue(inner, String(key))]));
  }
  if (Array.isArray(value)) return value.map((inner) => showValue(inner, member));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [hideIfCode(key), showValue(inner, key)]));
}

function* compareMaps(path: readonly string[], stored: Entries, rebuilt: Entries, notes: Notes): Steps {
  const before = notes.found.length;
  let compared = 0;
  for (const [key, value] of stored) {
    const other = rebuilt.get(key);
    if (!same(value, other)) yield* compare([...path, String(key)], value, other, notes);
    if (++compared % STEP_ENTRIES === 0) yield;
  }
  for (const [key, value] of rebuilt) {
    if (!stored.has(key)) yield* compare([...path, String(key)], undefined, value, notes);
    if (++compared % STEP_ENTRIES === 0) yield;
  }
  if (notes.found.length === before && !sameOrder(stored, rebuilt)) notes.add({ path, values: "reordered" });
}

interface Notes {
  readonly found: readonly Difference[];
  readonly add: (difference: Difference) => void;
}

type Steps = Generator<void, void, void>;
type Entries = ReadonlyMap<unknown, unknown>;

function sameOrder(stored: Entries, rebuilt: Entries): boolean {
  const others = rebuilt.keys();
  for (const key of stored.keys()) if (others.next().value !== key) return false;
  return true;
}

/** True if two values of states are equal. Maps count as unequal, so that `compareMaps` compares them. */
function same(stored: unknown, rebuilt: unknown): boolean {
  if (Object.is(stored, rebuilt)) return true;
  if (!isObject(stored) || !isObject(rebuilt)) return false;
  if (stored instanceof Map || rebuilt instanceof Map) return false;
  for (const key in stored) if (!same(stored[key], rebuilt[key])) return false;
  for (const key in rebuilt) if (!Object.hasOwn(stored, key)) return false;
  return true;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

export function formatPath(path: readonly string[]): string {
  return path.length === 0 ? "state" : path.join(".");
}

/** Formats a value as JSON, and a Map as the list of its entries. */
export function formatValue(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => (inner instanceof Map ? [...inner] : inner)) ?? "nothing";
}
