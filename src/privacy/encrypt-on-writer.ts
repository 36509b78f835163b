// Loaded by the writer thread of the log: seals what the codec left unfinished.
import type { Finish } from "eventstore-lite";
import { readOrder, withBox } from "../../events/encryption-order.ts";
import { sealText } from "./ciphertext.ts";
import { passingKey } from "./key-tree.ts";

const finish: Finish = (data, unfinished) => {
  const { prefix, key, context, text } = readOrder(unfinished);
  return withBox(data, prefix + sealText(passingKey(key), text, context));
};

export default finish;
