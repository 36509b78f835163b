import { peerBenches, storeBenches } from "./benches.ts";
import { runBenches } from "./run-benches.ts";

await runBenches(storeBenches, peerBenches, process.argv.slice(2));
