import type { Import } from "./imports.ts";

/**
 * The rooms (folders) of the code by floor, from the ground up. An import leads to a lower floor or stays in its room.
 */
export const FLOORS: readonly (readonly string[])[] = [
  ["platform", "template", "eventstore-lite"],
  ["events", "sandbox"],
  ["projections", "networks"],
  ["projector"],
  ["log"],
  ["vault", "history", "tracing"],
  ["config"],
  ["delivery", "privacy", "account"],
  ["recipients", "links"],
  ["outreach", "backup"],
  ["operations.ts"],
  ["console", "metrics"],
  ["http"],
  ["service"],
  ["commands"],
  ["main.ts"],
];

/**
 * Returns the room (area of the code) of a file: its folder in `src`, otherwise its top-level folder. The package
 * `eventstore-lite` within `events` is a room of its own.
 */
export function roomOf(file: string): string {
  const [top = "", second = ""] = file.split("/");
  if (top === "src") return second;
  return second === "eventstore-lite" ? second : top;
}

/**
 * Returns "A imports B" for each import that breaks the layers in `FLOORS`: B is in another folder than A, and B's
 * folder is not in a lower layer. An import between two folders is also returned if one of them has no layer.
 */
export function uphill(imports: readonly Import[]): readonly string[] {
  const floorOf = new Map(FLOORS.flatMap((rooms, floor) => rooms.map((room) => [room, floor] as const)));
  return imports.flatMap(({ from, to }) => {
    const [room, other] = [roomOf(from), roomOf(to)];
    if (room === other) return [];
    const [floor, below] = [floorOf.get(room), floorOf.get(other)];
    return floor !== undefined && below !== undefined && below < floor ? [] : [`${from} imports ${to}`];
  });
}

/** Groups of files that import each other in a circle, each group once, in the order in which they are found. */
export function cycles(imports: readonly Import[]): readonly (readonly string[])[] {
  const targets = new Map<string, string[]>();
  for (const { from, to } of imports) targets.set(from, [...(targets.get(from) ?? []), to]);
  const reach = (start: string): ReadonlySet<string> => {
    const seen = new Set<string>();
    const waiting = [...(targets.get(start) ?? [])];
    for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
      if (seen.has(file)) continue;
      seen.add(file);
      waiting.push(...(targets.get(file) ?? []));
    }
    return seen;
  };
  const reached = new Map([...targets.keys()].map((file) => [file, reach(file)]));
  const found: string[][] = [];
  for (const [file, others] of reached) {
    if (!others.has(file) || found.some((group) => group.includes(file))) continue;
    found.push([...reached.keys()].filter((other) => others.has(other) && reached.get(other)?.has(file) === true));
  }
  return found;
}
