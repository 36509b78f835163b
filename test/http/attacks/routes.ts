import { ENDPOINTS } from "../../../src/http/endpoints.ts";
import { GOOD } from "../../harness/memory/app.ts";

/** Every path with its method, as the service knows them. */
export const PATHS = ENDPOINTS.map(({ path, method, protection }) => ({ path, method, protection }));

export const POSTS = Object.keys(GOOD) as (keyof typeof GOOD)[];

/** Paths that a stranger may ask when the policy is strict. */
export const OPEN: readonly string[] = PATHS.filter(({ protection }) => protection === "open").map(({ path }) => path);

export function goodBody(path: keyof typeof GOOD): string {
  return JSON.stringify(GOOD[path]);
}
