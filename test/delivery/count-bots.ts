/**
 * Counts recognised bots, and people mistaken for bots, in this project's lists of user agents. Usage: `bun
 * test/delivery/count-bots.ts [PEOPLE MACHINES]`; the two optional files have one user agent per line and are counted
 * too.
 */
import { readFileSync } from "node:fs";
import crawlers from "crawler-user-agents";
import { isbot } from "isbot";
import { isBot, OF_PEOPLE } from "../../src/delivery/is-bot.ts";
import userAgents from "../fixtures/user-agents.json";

const ofKind = (bot: boolean): string[] => userAgents.filter((each) => each.bot === bot).map(({ ua }) => ua);
const linesOf = (file: string): string[] => readFileSync(file, "utf8").split("\n").filter(Boolean);

const [people, machines] = process.argv.slice(2);
const lists = [
  { name: "crawler-user-agents", bot: true, list: crawlers.flatMap((each) => instancesOf(each)) },
  { name: "fixture", bot: true, list: ofKind(true) },
  { name: "fixture", bot: false, list: ofKind(false) },
  ...(people === undefined ? [] : [{ name: people, bot: false, list: linesOf(people) }]),
  ...(machines === undefined ? [] : [{ name: machines, bot: true, list: linesOf(machines) }]),
];

for (const { name, bot, list } of lists) {
  const wrong = (judge: (userAgent: string) => boolean): number => list.filter((ua) => judge(ua) !== bot).length;
  const mistake = bot ? "machines taken for people" : "people taken for machines";
  console.log(`${name}, ${mistake}, of ${list.length}: isbot alone ${wrong(isbot)}, reachlog ${wrong(isBot)}`);
}

function instancesOf({ pattern, instances }: { readonly pattern: string; readonly instances: string[] }): string[] {
  return OF_PEOPLE.has(pattern) ? [] : instances;
}
