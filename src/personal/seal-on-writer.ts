// Loaded by the writer thread of the log: seals what the codec left unfinished.
import type { Finish } from "eventstore-lite";
import { readOrder, withBox } from "../../events/sealing-order.ts";
import { sealText } from "./box.ts";
import { derived } from "./key-tree.ts";

const finish: Finish = (data, unfinished) => {
  const { prefix, key, below, context, text } = readOrder(unfinished);
  return withBox(data, prefix + sealText(derived({ key, below }), text, context));
};

export default finish;
