import type { Sandbox } from "../sandbox.ts";

/** Everything that arrived: counts are complete, lists hold the newest. */
export function arrived({ tally, x, meta, slack, telegram }: Sandbox) {
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
    slack: { ...tally.slack, total: slack.messages.total, messages: slack.messages.kept },
    telegram: { ...tally.telegram, total: telegram.messages.total, messages: telegram.messages.kept },
  };
}

function most(counts: Iterable<number>): number {
  let highest = 0;
  for (const count of counts) highest = Math.max(highest, count);
  return highest;
}
