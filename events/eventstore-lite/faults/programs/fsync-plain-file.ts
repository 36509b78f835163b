// Writes numbered records to the file named by its argument without end, with one fsync each, and prints every number
// after its fsync. It shows that a power cut of this suite takes nothing that was fsynced.
import { fsyncSync, openSync, writeSync } from "node:fs";
import { RECORD_BYTES } from "../plain-file-record-length.ts";
import { say } from "./print-line.ts";

const [file = ""] = process.argv.slice(2);
const descriptor = openSync(file, "w");
for (let number = 1; ; number += 1) {
  writeSync(descriptor, `${number}\n`.padStart(RECORD_BYTES), (number - 1) * RECORD_BYTES);
  fsyncSync(descriptor);
  say(number);
}
