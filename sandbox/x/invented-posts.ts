import type { SandboxClock } from "../clock.ts";
import { createRecorded, type Recorded } from "../record-received.ts";
import { exists, type Person } from "./people.ts";

/** Age of the oldest post that a search of recent posts finds: https://docs.x.com/x-api/posts/search/introduction */
const SEARCHED_MS = 7 * 24 * 3_600_000;

/** Time between the posts that exist at the sandbox's start, in ms; the newest one is this old. */
const APART_MS = 60_000;

export interface Post {
  readonly id: string;
  readonly author_id: string;
  readonly text: string;
  readonly created_at: number;
}

/** Data that a search reads: the posts, their authors, and the clock. */
interface Timeline {
  readonly posts: Recorded<Post>;
  readonly people: Map<string, Person>;
  readonly clock: SandboxClock;
}

/**
 * Creates the posts that exist at the sandbox's start, one by each person with a post. The first person's is the
 * newest.
 */
export function firstPosts(cast: readonly Person[], now: number): Recorded<Post> {
  const posts = createRecorded<Post>();
  const authors = cast.filter((person) => person.post !== undefined);
  for (const [index, { id, post = "" }] of authors.toReversed().entries()) {
    add(posts, id, post, now - (authors.length - index) * APART_MS);
  }
  return posts;
}

/** Adds a post, which becomes the person's newest. */
export function publish({ posts, people, clock }: Timeline, author: Person, text: string): Post {
  people.set(author.id, { ...author, post: text });
  return add(posts, author.id, text, clock.now());
}

/** Returns the posts that a search can find, newest first: of existing, unprotected people, and not too old. */
export function recentPosts(state: Timeline): Post[] {
  publishNew(state);
  const since = oldestSearched(state.clock);
  const isShown = ({ author_id, created_at }: Post): boolean => {
    const author = state.people.get(author_id);
    return created_at > since && exists(author) && author.protected !== true;
  };
  return state.posts.kept.filter(isShown).toReversed();
}

/** Returns the time of the oldest post that a search can find, in ms since the epoch. */
export function oldestSearched(clock: SandboxClock): number {
  return clock.now() - SEARCHED_MS;
}

/** Adds a post of each person whose `post` a test has changed. */
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

/** Time at which X's ids begin to count, in ms since the epoch. */
const EPOCH_MS = 1_288_834_974_657n;

/** Number of an id's low bits, which do not belong to its time: machine and sequence. */
const SEQUENCE_BITS = 22n;
const SEQUENCES = 2 ** 22;

/** Returns an id like X's, which contains the time and grows with it. `sequence` distinguishes ids of the same ms. */
export function snowflakeAt(time: number, sequence: number): string {
  const since = BigInt(Math.floor(time)) - EPOCH_MS;
  return String((since << SEQUENCE_BITS) + BigInt(sequence));
}
