import type { NetworkTally, Recorded } from "../recorded.ts";
import type { ControlledWorld } from "../world.ts";

/** Everything that arrived: counts are complete, lists hold the newest. */
export function arrived(sandbox: ControlledWorld) {
  const { tally, x, meta, slack, discord, googleChat, teams, telegram, line, whatsapp } = sandbox;
  const perRecipient = [...x.accepted.values()];
  return {
    x: {
      ...tally.x,
      total: x.messages.total,
      messages: x.messages.kept,
      accepted: perRecipient.reduce((sum, count) => sum + count, 0),
      billed: x.billed,
      recipients: perRecipient.length,
      most_per_recipient: most(perRecipient),
      accepted_by_recipient: Object.fromEntries(x.accepted),
      grants: x.grants.kept,
      refreshes_per_token_most: most(x.refreshUses.values()),
    },
    meta: { ...tally.meta, bodies: meta.requests.total, unique: meta.events.total, events: meta.events.kept },
    slack: texts(tally.slack, slack),
    discord: texts(tally.discord, discord),
    google_chat: texts(tally.google_chat, googleChat),
    teams: { ...texts(tally.teams, teams), failures: teams.failures.kept },
    telegram: texts(tally.telegram, telegram),
    line: texts(tally.line, line),
    whatsapp: texts(tally.whatsapp, whatsapp),
  };
}

function texts<T>(tally: NetworkTally, { messages }: { readonly messages: Recorded<T> }) {
  return { ...tally, total: messages.total, messages: messages.kept };
}

function most(counts: Iterable<number>): number {
  let highest = 0;
  for (const count of counts) highest = Math.max(highest, count);
  return highest;
}
