import { pagedSource } from "./paged.ts";
import type { Source } from "./source.ts";

/** Authors of recent posts that match a query. */
export function searchSource(query: string): Source {
  return pagedSource({
    name: "search",
    scope: () => query,
    read: ({ network, credentials }, page) => credentials.use((token) => network.searchAuthors(token, query, page)),
  });
}
