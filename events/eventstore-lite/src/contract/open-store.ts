import type { EventStore } from "../store.ts";

/** Opens a new, empty store. `clock` (milliseconds since 1970, UTC) replaces the real one in tests about time. */
export type OpenStore = (options?: { readonly clock?: () => number }) => Promise<EventStore>;
