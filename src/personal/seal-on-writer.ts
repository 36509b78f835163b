// Loaded by the writer thread of the log: seals what the codec left unfinished.
import type { Finish } from "eventstore-lite";
import { readOrder, withBox } from "../../events/sealing-order.ts";
import { KEY_BYTES } from "../account/key.ts";
import { sealText } from "./box.ts";
import { derived } from "./key-tree.ts";

const KEY_DIGITS = 2 * KEY_BYTES;

const finish: Finish = (data, unfinished) => {
  const { prefix, key, context, text } = readOrder(unfinished);
  return withBox(data, prefix + sealText(keyOf(key), text, context));
};

function keyOf(text: string): Uint8Array {
  return derived({ key: Uint8Array.fromHex(text.slice(0, KEY_DIGITS)), below: text.slice(KEY_DIGITS) });
}

export default finish;
