import { peerBenches, storeBenches } from "./benches.ts";
import { runBenches } from "./command.ts";

await runBenches(storeBenches, peerBenches, process.argv.slice(2));
