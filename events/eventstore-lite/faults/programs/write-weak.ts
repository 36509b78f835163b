// Commits numbered rows to a log's database without end, opened as the store opens it but with synchronous=NORMAL, and
// says every number after its COMMIT. It shows that a power cut of this suite can take what a store acknowledged.
import { openWeakDatabase } from "../weak-database.ts";
import { say } from "./say.ts";

const [file = ""] = process.argv.slice(2);
const insert = openWeakDatabase(file).prepare(
  "INSERT INTO snapshots (name, version, position, state) VALUES (?, 1, ?, '')",
);
for (let number = 1; ; number += 1) {
  insert.run(`s${number}`, number);
  say(number);
}
