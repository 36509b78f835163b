// This group has no subcommands here: they are the operations of src/account/account.operations.ts.
import { group } from "./shared/command.ts";

export const account = group("account", "show or unlink the authorized X account", []);
