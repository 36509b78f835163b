// Runs append-keyed.ts in a process that takes more and more memory and releases none.
const MIB = 1024 * 1024;
const HOARD_BYTES = 2 * MIB;
const HOARD_EVERY_MS = 4;

const hoard: Buffer[] = [];
// The buffer is filled, so that the kernel has to provide its memory.
setInterval(() => hoard.push(Buffer.alloc(HOARD_BYTES, 1)), HOARD_EVERY_MS);
await import("./append-keyed.ts");
