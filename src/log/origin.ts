/** The name of a log in its checkpoints: its id is made with it, so that no two logs share a name. */
export function originOf(store: { readonly id: string }): string {
  return `reachlog/${store.id}`;
}
