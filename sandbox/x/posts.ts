import type { SandboxClock } from "../clock.ts";
import { createRecorded, type Recorded } from "../recorded.ts";
import { exists, type Person } from "./people.ts";

/** Period that a search of recent posts covers: https://docs.x.com/x-api/posts/search/introduction */
const SEARCHED_MS = 7 * 24 * 3_600_000;

/** Time between the cast's posts, all of them before the sandbox started. */
const APART_MS = 60_000;

export interface Post {
  readonly id: string;
  readonly author_id: string;
  readonly text: string;
  readonly created_at: number;
}

/** The posts, their authors, and the clock. */
interface Timeline {
  readonly posts: Recorded<Post>;
  readonly people: Map<string, Person>;
  readonly clock: SandboxClock;
}

/** The cast's first posts; the first person's is the newest. */
export function firstPosts(cast: readonly Person[], now: number): Recorded<Post> {
  const posts = createRecorded<Post>();
  const authors = cast.filter((person) => person.post !== undefined);
  for (const [index, { id, post = "" }] of authors.toReversed().entries()) {
    add(posts, id, post, now - (authors.length - index) * APART_MS);
  }
  return posts;
}

/** Publishes a person's post, which becomes their newest. */
export function publish({ posts, people, clock }: Timeline, author: Person, text: string): Post {
  people.set(author.id, { ...author, post: text });
  return add(posts, author.id, text, clock.now());
}

/** Posts of existing people within a search's period, newest first. */
export function recentPosts(state: Timeline): Post[] {
  publishNew(state);
  const since = oldestSearched(state);
  const isShown = ({ author_id, created_at }: Post): boolean => {
    const author = state.people.get(author_id);
    return created_at > since && exists(author) && author.protected !== true;
  };
  return state.posts.kept.filter(isShown).toReversed();
}

/** The earliest time that a search covers, in ms since the epoch. */
export function oldestSearched({ clock }: Pick<Timeline, "clock">): number {
  return clock.now() - SEARCHED_MS;
}

/** Publishes the posts of people who were replaced with a new one. */
function publishNew(state: Timeline): void {
  const newest = new Map(state.posts.kept.map(({ author_id, text }) => [author_id, text]));
  for (const person of state.people.values()) {
    if (person.post !== undefined && newest.get(person.id) !== person.post) publish(state, person, person.post);
  }
}

function add(posts: Recorded<Post>, author_id: string, text: string, created_at: number): Post {
  const post = { id: snowflakeAt(created_at, posts.total % SEQUENCES), author_id, text, created_at };
  posts.add(post);
  return post;
}

/** Start of X's ids, in ms since the epoch. */
const EPOCH_MS = 1_288_834_974_657n;

/** Number of bits below the time: machine and sequence. */
const SEQUENCE_BITS = 22n;
const SEQUENCES = 2 ** 22;

/** An id like X's: it contains the time and grows with it. `sequence` distinguishes ids of the same ms. */
export function snowflakeAt(time: number, sequence: number): string {
  const since = BigInt(Math.floor(time)) - EPOCH_MS;
  return String((since << SEQUENCE_BITS) + BigInt(sequence));
}
