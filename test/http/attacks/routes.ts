import { describeEndpoints } from "../../../src/http/endpoints.ts";
import { GOOD } from "../../harness/in-process/app.ts";

/** Every path with its method and protection, as the service declares them. */
export const PATHS = describeEndpoints().map(({ path, method, protection }) => ({ path, method, protection }));

/** Returns the value of the header `Allow` that a 405 at this path must have. */
export function allowOf(path: string): string {
  const methods = ["POST", "GET"].filter((method) => PATHS.some((one) => one.path === path && one.method === method));
  return methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])).join(", ");
}

export const POSTS = Object.keys(GOOD) as (keyof typeof GOOD)[];

/** Paths that need no token, even under AUTH_POLICY=strict. */
export const OPEN: readonly string[] = PATHS.filter(({ protection }) => protection === "open").map(({ path }) => path);

export function goodBody(path: keyof typeof GOOD): string {
  return JSON.stringify(GOOD[path]);
}
