import type { WriterTransform } from "eventstore-lite";

/**
 * Writer's transform for tests: stores the input, repeated as often as the event's data says. Some inputs make it fail.
 */
const writerTransform: WriterTransform = (data, input) => {
  if (input === "broken") throw new Error("it does not fit");
  if (input === "nothing") return undefined as never;
  const { times = 1 } = JSON.parse(data) as { times?: number };
  return JSON.stringify({ finished: input.repeat(times) });
};

export default writerTransform;
