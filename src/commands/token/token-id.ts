/** Digits of a token's SHA-256 that name it: enough to tell a service's tokens apart, and to find one by a few of them. */
const ID_DIGITS = 12;

/** Names a token without telling it. */
export function tokenId(sha256: string): string {
  return sha256.slice(0, ID_DIGITS);
}
