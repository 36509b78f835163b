/**
 * Counts how many machines of two lists are known for what they are, and how many people are taken for machines:
 * `bun test/delivery/count-bots.ts`
 */
import crawlers from "crawler-user-agents";
import { isbot } from "isbot";
import { isBot, OF_PEOPLE } from "../../src/delivery/bots.ts";
import userAgents from "../fixtures/user-agents.json";

const ofKind = (bot: boolean): string[] => userAgents.filter((each) => each.bot === bot).map(({ ua }) => ua);
const listed = crawlers.filter(({ pattern }) => !OF_PEOPLE.has(pattern)).flatMap(({ instances }) => instances);

const takenBy = (judge: (userAgent: string) => boolean, list: readonly string[]): string =>
  `${list.filter(judge).length} of ${list.length}`;

for (const [name, judge] of [
  ["isbot alone", isbot],
  ["reachlog", isBot],
] as const) {
  console.log(
    `${name.padEnd(12)} machines of crawler-user-agents: ${takenBy(judge, listed)};`,
    `of the fixture: ${takenBy(judge, ofKind(true))}; people taken for machines: ${takenBy(judge, ofKind(false))}`,
  );
}
