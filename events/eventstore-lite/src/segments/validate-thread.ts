// Validates sealed segments; started by validate-in-thread.ts.
import { answerTask } from "../thread-task.ts";
import { type ProveOrder, proveAll } from "./validate-in-thread.ts";

await answerTask((order: ProveOrder, onProved, fetchFile) => proveAll({ read: fetchFile }, order, { onProved }));
