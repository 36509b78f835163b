// The writer thread: the only place that writes to the log, so that waiting for the disk never stops the event loop
// of the thread that serves requests. Started by open.ts.
import { servingThread } from "../../append/start-writer.ts";
import { serveSqliteWriter } from "./serve-writer.ts";

await servingThread(serveSqliteWriter);
