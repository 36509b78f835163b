/** Maximum number of links counted separately; bounds the memory however many links are posted. */
export const COUNTED_LINKS_MAX = 10_000;

/**
 * Number of links dropped at once, because looking for the oldest link at each click would cost more than counting the
 * click.
 */
const LINKS_DROPPED = COUNTED_LINKS_MAX / 10;

/**
 * Counts of one link, with the position of its last use. Moving the entry to the Map's end at each click instead would
 * cost more in JavaScriptCore, with 10,000 entries, than counting the click.
 */
export interface Recent {
  /** Position of the last event about the link, such as a click. */
  last_position: number;
}

/** Drops the links that were not used for longest, once there are more than {@link COUNTED_LINKS_MAX}. */
export function dropOldest<Link extends Recent>(links: Map<string, Link>, onDropped: (link: Link) => void): void {
  if (links.size <= COUNTED_LINKS_MAX) return;
  const positions = Float64Array.from(links.values(), ({ last_position }) => last_position).sort();
  const newestDropped = positions[LINKS_DROPPED - 1] ?? 0;
  for (const [name, link] of links) {
    if (link.last_position > newestDropped) continue;
    links.delete(name);
    onDropped(link);
  }
}

/** Returns the links in the order of their last clicks, the latest first. */
export function byLastClick<Link extends Recent>(links: ReadonlyMap<string, Link>): (readonly [string, Link])[] {
  return [...links].sort(([, one], [, other]) => other.last_position - one.last_position);
}
