/** What X would charge for, by kind: everything that answers returned, also of what was asked before. */
export interface Billed {
  /** Messages taken. */
  sends: number;
  users: number;
  /** Followers of the account that asked. */
  followers: number;
  posts: number;
  /** Messages read. */
  messages: number;
}

export function createBilled(): Billed {
  return { sends: 0, users: 0, followers: 0, posts: 0, messages: 0 };
}

export function bill(billed: Billed, more: Partial<Billed>): void {
  for (const name of Object.keys(billed) as (keyof Billed)[]) billed[name] += more[name] ?? 0;
}
