import { existsSync } from "node:fs";
import { isBun } from "./runtime.ts";

/** Adds the settings of the folder's `.env` to the environment, whose own stay. Bun has done so by itself. */
export function loadEnvFile(): void {
  if (!isBun && existsSync(".env")) process.loadEnvFile();
}
