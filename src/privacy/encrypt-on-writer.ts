// Loaded by the writer thread of the log: encrypts what the codec left unfinished.
import type { Finish } from "eventstore-lite";
import { decodeRequest, withCiphertext } from "../../events/encryption.ts";
import { encryptText } from "./key-store.ts";

const finish: Finish = (data, unfinished) => {
  const { prefix, key, context, text } = decodeRequest(unfinished);
  return withCiphertext(data, prefix + encryptText(Buffer.from(key, "hex"), text, context));
};

export default finish;
