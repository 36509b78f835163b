import type { SocialUser } from "../networks/network.ts";
import type { Candidate, RunContext } from "./context.ts";

/** A candidate and the network's view of them; undefined where the network knows nobody of that name. */
export interface LookedUp {
  readonly candidate: Candidate;
  readonly user: SocialUser | undefined;
}

/**
 * Asks the network for those candidates whose source did not: at most one request by id and one by handle.
 * Throws the network's SocialError.
 */
export async function lookUp(
  { network, credentials }: Pick<RunContext, "network" | "credentials">,
  candidates: readonly Candidate[],
): Promise<readonly LookedUp[]> {
  const asked = candidates.filter(({ user }) => user === undefined).map(({ who }) => who);
  const ids = asked.flatMap(({ id }) => id ?? []);
  const handles = asked.flatMap(({ id, username }) => (id === undefined ? (username ?? []) : []));
  const found = [
    ...(ids.length === 0 ? [] : await credentials.use((token) => network.usersById(token, ids))),
    ...(handles.length === 0 ? [] : await credentials.use((token) => network.usersByUsername(token, handles))),
  ];
  const byId = new Map(found.map((user) => [user.id, user]));
  const byHandle = new Map(found.map((user) => [user.username.toLowerCase(), user]));
  return candidates.map((candidate) => {
    const { id, username = "" } = candidate.who;
    const match = id === undefined ? byHandle.get(username.toLowerCase()) : byId.get(id);
    return { candidate, user: candidate.user ?? match };
  });
}
