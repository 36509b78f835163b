import { parse, refuseMore, UsageError, type Command } from "./command.ts";
import { list } from "./token/list.ts";
import { make } from "./token/make.ts";
import { remove } from "./token/remove.ts";

export const token: Command = {
  summary: "make, list and remove the tokens of callers",
  help: `reachlog token new NAME [--add] [--json]
reachlog token list [--json]
reachlog token remove ID

new      makes a token for the caller NAME and prints it, once, with the entry to
         configure, which holds the token's SHA-256 only. With --add the entry is
         appended to API_TOKENS_FILE, which is made where it is missing
list     the callers' tokens by name and id, those of API_TOKENS and of the file
remove   takes the token with this id, or the beginning of it, out of the file

To exchange a token without a gap: make a second one of the same NAME, give it to
the caller, and remove the first one when the caller has gone over to the second.
Both are valid meanwhile, and the log shows NAME either way.

A running service takes a changed API_TOKENS_FILE over within three seconds; a
faulty, empty or missing one changes nothing and is told in its log. What stands
in API_TOKENS changes with a restart.
`,
  async run(args, terminal) {
    const { values, positionals } = parse(
      args,
      {
        json: { type: "boolean", default: false },
        add: { type: "boolean", default: false },
      },
      2,
    );
    const [action, subject] = positionals;
    if (action === "list") refuseMore(positionals, 1);
    if (action === "new" && subject !== undefined) return make(terminal, subject, values);
    if (action === "list") return list(terminal, values.json);
    if (action === "remove" && subject !== undefined) return remove(terminal, subject);
    throw new UsageError("token wants new NAME, list or remove ID");
  },
};
