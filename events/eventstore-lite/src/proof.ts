/** Notes, checkpoints, the keys that sign them, the Merkle tree, proofs, cosigning and the witness. */
export { ChainBroken, CheckpointRefused, SigningKeyRefused } from "./errors.ts";
export { readCheckpointFile } from "./proof/checkpoint-file.ts";
export { checkpointFiles, type CheckpointStore } from "./proof/newest-checkpoint-and-key.ts";
export { contradictionOf, openCheckpoint, signCheckpoint, type Checkpoint } from "./proof/checkpoint.ts";
export {
  requestCosignature,
  startCosigning,
  type WitnessConfig,
  type Witnessed,
} from "./proof/request-cosignatures.ts";
export { openProof } from "./proof/event-proof.ts";
export { createLogTree } from "./proof/log-tree.ts";
export { formatVerifierKey } from "./proof/signed-note.ts";
export { proveEvent, proveExtension } from "./proof/prove.ts";
export {
  formatPublicKey,
  loadSigningKey,
  parsePublicKey,
  parseVerifierKey,
  signingKeyOf,
  type SigningKey,
} from "./proof/signing-key.ts";
export { createTreeRange } from "./proof/merkle-tree.ts";
export { serveWitness } from "./proof/witness-server.ts";
export { openWitness, type Witness } from "./proof/witness.ts";
