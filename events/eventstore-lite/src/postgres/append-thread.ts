// The writer thread of a store on PostgreSQL, started by open.ts. Finishing events and large batches take long here
// without blocking the event loop of the thread that serves requests.
import { servingThread } from "../append/start-writer.ts";
import { servePostgresWriter } from "./serve-writer.ts";

await servingThread(servePostgresWriter);
