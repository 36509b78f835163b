import { pagedSource } from "./paged.ts";
import type { Source } from "./source.ts";

/** The members of one of the network's own lists. */
export function listMembersSource(listId: string): Source {
  return pagedSource({
    name: "list_members",
    scope: () => listId,
    read: ({ network, credentials }, page) => credentials.use((token) => network.listMembers(token, listId, page)),
  });
}
