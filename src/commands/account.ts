import { group } from "./shared/command.ts";

export const account = group("account", "show or unlink the authorized X account", []);
