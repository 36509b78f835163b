import { Argument, Command, type MakeCommand } from "./shared/command.ts";
import { bashScript } from "./completion/bash.ts";
import { describeCommands } from "./completion/commands.ts";
import { fishScript } from "./completion/fish.ts";
import { zshScript } from "./completion/zsh.ts";

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

export const completion: MakeCommand = (terminal, exit) =>
  new Command("completion")
    .summary("print a script that completes commands and options in a shell")
    .description(
      `Prints a script that lets a shell complete the commands, options and values of
reachlog. It is of this version: print it again after an upgrade.`,
    )
    .addArgument(new Argument("<shell>", "the shell").choices(["bash", "zsh", "fish"] as const))
    .addHelpText(
      "after",
      `
Examples:
  reachlog completion bash > ~/.local/share/bash-completion/completions/reachlog
  reachlog completion zsh > /usr/local/share/zsh/site-functions/_reachlog
  reachlog completion fish > ~/.config/fish/completions/reachlog.fish`,
    )
    .action(
      exit((shell, _options, { parent }) => {
        if (parent !== null) terminal.out(SCRIPTS[shell](describeCommands(parent)));
      }),
    );
