import { graphError, unknownPath } from "./answers.ts";

/** v21 dies on 2027-01-21; https://developers.facebook.com/docs/graph-api/changelog */
const VERSION_MIN = 22;
const VERSION_MAX = 26;

/** What the Graph API answers for a version that it does not have, or no longer. */
export function versionFault(version: string, path: string): Response | undefined {
  const number = Number(/^v(\d+)\.0$/.exec(version)?.[1] ?? Infinity);
  if (number > VERSION_MAX) return unknownPath(path);
  if (number >= VERSION_MIN) return undefined;
  return graphError(400, 2635, "(#2635) You are calling a deprecated version of the Ads API.");
}
