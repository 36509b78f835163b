// The writer thread of the log loads this file. It encrypts the personal data that the codec passes to that thread in
// the clear, together with the key.
import type { WriterTransform } from "eventstore-lite";
import { decodeRequest, withCiphertext } from "../../events/declare-personal-members.ts";
import { encryptText } from "./key-store.ts";

const writerTransform: WriterTransform = (data, input) => {
  const { prefix, key, context, text } = decodeRequest(input);
  return withCiphertext(data, prefix + encryptText(Buffer.from(key, "hex"), text, context));
};

export default writerTransform;
