import { HttpResponse } from "msw";

/** Answers with an error of Meta's Graph API: https://developers.facebook.com/docs/graph-api/guides/error-handling */
export function graphError(status: number, code: number, message: string, more: Record<string, unknown> = {}) {
  const error = { message, type: "OAuthException", code, is_transient: false, fbtrace_id: "ASandboxTrace", ...more };
  return HttpResponse.json({ error }, { status });
}

export function unknownPath(path: string): Response {
  return graphError(400, 2500, `Unknown path components: ${path}`);
}

/**
 * Oldest version of the Graph API that Meta supports. v21 expires on 2027-01-21;
 * https://developers.facebook.com/docs/graph-api/changelog
 */
const VERSION_MIN = 22;
const VERSION_MAX = 27;

/**
 * Checks the version, the token and the object's id in a request, e.g. to `/v27.0/1234/events`. Returns the refusal;
 * undefined if all three are valid.
 */
export function graphRefusal(
  { method, url }: Request,
  { isKnownToken, object, refuseToken }: { isKnownToken: boolean; object: string; refuseToken(): Response },
): Response | undefined {
  const { pathname } = new URL(url);
  const [, version = "", asked = ""] = pathname.split("/");
  const number = Number(/^v(\d+)\.0$/.exec(version)?.[1] ?? Infinity);
  if (number > VERSION_MAX) return unknownPath(pathname);
  if (number < VERSION_MIN) {
    return graphError(400, 2635, "(#2635) You are calling a deprecated version of the Ads API.");
  }
  if (!isKnownToken) return refuseToken();
  if (asked === object) return undefined;
  const message = `Unsupported ${method.toLowerCase()} request. Object with ID '${asked}' does not exist, cannot be loaded due to missing permissions, or does not support this operation.`;
  return graphError(400, 100, message, { type: "GraphMethodException", error_subcode: 33 });
}
