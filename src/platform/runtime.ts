import { existsSync } from "node:fs";

/** Whether this runs on Bun: where others do differently what cannot be written in one way for all. */
export const isBun: boolean = process.versions.bun !== undefined;

/** Adds the settings of the folder's `.env` to the environment, whose own stay. Bun has done so by itself. */
export function loadEnvFile(): void {
  if (!isBun && existsSync(".env")) process.loadEnvFile();
}
