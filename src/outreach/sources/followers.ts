import type { SocialNetwork } from "../../networks/network.ts";
import type { Credentials } from "../../account/tokens.ts";
import { LOOKUP_BATCH, type Source } from "./source.ts";

/** Those who follow the authorized account, newest first, paged as far as the run needs. */
export function followersSource(network: SocialNetwork, credentials: Credentials, ownId: () => string): Source {
  return {
    name: "followers",
    async *candidates(patience) {
      let cursor: string | undefined;
      do {
        const page = await patience(() => credentials.use((token) => network.followers(token, ownId(), cursor)));
        for (let at = 0; at < page.users.length; at += LOOKUP_BATCH) {
          yield page.users
            .slice(at, at + LOOKUP_BATCH)
            .map((user) => ({ who: { id: user.id, username: user.username }, user }));
        }
        cursor = page.next;
      } while (cursor !== undefined);
    },
  };
}
