import type { Candidate } from "./context.ts";
import type { Credentials } from "../account/tokens.ts";
import type { SocialNetwork, SocialUser } from "../networks/network.ts";

/** A candidate and the network's view of them; undefined where the network knows nobody of that name. */
export interface Resolved {
  readonly candidate: Candidate;
  readonly user: SocialUser | undefined;
}

/**
 * Asks the network for those candidates whose source did not: at most one request by id and one by handle.
 * Throws the network's SocialError.
 */
export async function resolve(
  network: SocialNetwork,
  credentials: Credentials,
  candidates: readonly Candidate[],
): Promise<readonly Resolved[]> {
  const asked = candidates.filter((candidate) => candidate.user === undefined);
  const ids = asked.flatMap(({ who }) => (who.id === undefined ? [] : [who.id]));
  const handles = asked.flatMap(({ who }) =>
    who.id === undefined && who.username !== undefined ? [who.username] : [],
  );
  const found = [
    ...(ids.length === 0 ? [] : await credentials.use((token) => network.usersById(token, ids))),
    ...(handles.length === 0 ? [] : await credentials.use((token) => network.usersByUsername(token, handles))),
  ];
  const byId = new Map(found.map((user) => [user.id, user]));
  const byHandle = new Map(found.map((user) => [user.username.toLowerCase(), user]));
  return candidates.map((candidate) => ({
    candidate,
    user: candidate.user ?? match(candidate),
  }));

  function match({ who }: Candidate): SocialUser | undefined {
    return who.id === undefined ? byHandle.get(who.username?.toLowerCase() ?? "") : byId.get(who.id);
  }
}
