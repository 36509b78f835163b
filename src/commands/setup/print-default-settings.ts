import { readFileSync } from "node:fs";
import { Command, type MakeCommand } from "../shared/command.ts";

export const settings: MakeCommand = (terminal) =>
  new Command("settings")
    .summary("print every setting with its default")
    .description("Prints every setting with its default, commented out: a .env to begin with.")
    .examples("reachlog settings > .env")
    .action(() => terminal.out(readFileSync(new URL("../../../.env.example", import.meta.url), "utf8")));
