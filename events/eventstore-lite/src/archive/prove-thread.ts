// Proves sealed segments; started by prove-apart.ts.
import { answerTask } from "../thread-task.ts";
import { type ProveOrder, proveAll } from "./prove-apart.ts";

await answerTask((order: ProveOrder, onProved, fetchFile) => proveAll({ read: fetchFile }, order, { onProved }));
