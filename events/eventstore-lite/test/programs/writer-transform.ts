import type { WriterTransform } from "eventstore-lite";

/** Adds the input to the data, as often as the data says. */
const writerTransform: WriterTransform = (data, input) => {
  if (input === "broken") throw new Error("it does not fit");
  if (input === "nothing") return undefined as never;
  const { times = 1 } = JSON.parse(data) as { times?: number };
  return JSON.stringify({ finished: input.repeat(times) });
};

export default writerTransform;
