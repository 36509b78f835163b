import { expect, test } from "bun:test";
import { slackHours } from "../delivery/simulate-rate-limited-chat.ts";
import { isWhole } from "../harness/case-count.ts";

const HOURS = isWhole ? 24 : 1;
test(`a chat limited to a message a second receives ${HOURS} h of five clicks a second`, async () => {
  const seen = await slackHours(HOURS, 5);
  console.log(`slow chat for ${HOURS} h: ${JSON.stringify(seen)}`);
  expect(seen.clicks).toBe(HOURS * 3_600 * 5);
  expect(seen.refusalsAMinute).toBeLessThanOrEqual(1);
  expect(seen.lagMaxS).toBeLessThan(45);
});
