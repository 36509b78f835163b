// This file has only the command group `account`: its subcommands are operations of src/account/account.operations.ts.
import { group } from "./shared/command.ts";

export const account = group("account", "show or unlink the authorized X account", []);
