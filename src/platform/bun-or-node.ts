import { existsSync } from "node:fs";

/** True on Bun; for the few places where runtimes need different code. */
export const isBun: boolean = process.versions.bun !== undefined;

/** Adds `.env` to the environment, whose variables take precedence. Bun does this itself. */
export function loadEnvFile(): void {
  if (!isBun && existsSync(".env")) process.loadEnvFile();
}
