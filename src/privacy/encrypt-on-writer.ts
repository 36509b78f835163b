// Loaded by the writer thread of the log: seals what the codec left unfinished.
import type { Finish } from "eventstore-lite";
import { readOrder, withCiphertext } from "../../events/encryption-order.ts";
import { encryptText } from "./ciphertext.ts";
import { passingKey } from "./key-tree.ts";

const finish: Finish = (data, unfinished) => {
  const { prefix, key, context, text } = readOrder(unfinished);
  return withCiphertext(data, prefix + encryptText(passingKey(key), text, context));
};

export default finish;
