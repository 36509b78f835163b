// The writer thread of the log loads this file, which encrypts what the codec left to it.
import type { WriterTransform } from "eventstore-lite";
import { decodeRequest, withCiphertext } from "../../events/encryption.ts";
import { encryptText } from "./key-store.ts";

const writerTransform: WriterTransform = (data, input) => {
  const { prefix, key, context, text } = decodeRequest(input);
  return withCiphertext(data, prefix + encryptText(Buffer.from(key, "hex"), text, context));
};

export default writerTransform;
