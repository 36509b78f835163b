import { pagedSource } from "./paged.ts";
import type { Source } from "./source.ts";

/** Those who follow the authorized account. */
export function followersSource(ownId: () => string): Source {
  return pagedSource({
    name: "followers",
    scope: ownId,
    read: ({ network, credentials }, page) => credentials.use((token) => network.followers(token, ownId(), page)),
  });
}
