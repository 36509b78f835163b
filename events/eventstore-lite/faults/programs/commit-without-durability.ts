// Commits numbered rows without end to a log's database, opened as by the store but with synchronous=NORMAL, and prints
// every number after its COMMIT. It shows that a power cut of this suite can take acknowledged data.
import { openWeakDatabase } from "../open-without-durability.ts";
import { say } from "./print-line.ts";

const [file = ""] = process.argv.slice(2);
const insert = openWeakDatabase(file).prepare(
  "INSERT INTO snapshots (name, version, position, state) VALUES (?, 1, ?, '')",
);
for (let number = 1; ; number += 1) {
  insert.run(`s${number}`, number);
  say(number);
}
