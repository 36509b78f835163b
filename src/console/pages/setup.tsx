/** @jsxImportSource preact */
import type { VNode } from "preact";
import { ActionForm, Hindered } from "../parts/action-form.tsx";
import { ConsoleDocument, Head, Section } from "../document.tsx";
import { Badge, type BadgeState } from "../parts/icon-and-badge.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { listTokens } from "../../privacy/list-api-tokens.operations.ts";
import { setupSteps, type SetupStep } from "../parts/setup-steps.tsx";
import { consolePage, askOperation, type View } from "../page-context.ts";
import { A } from "../parts/links-forms-and-tabs.tsx";

export const setupPage = consolePage({
  reads: ["account", "backups", "contacts", "deliveries", "signals", "tokens"],
  render: renderSetup,
});

async function renderSetup(
  view: View<"account" | "backups" | "contacts" | "deliveries" | "signals" | "tokens">,
): Promise<VNode> {
  const steps = setupSteps(view);
  const isUntestable = view.settings.configured.length === 0;
  const finished = steps.filter(({ status }) => status === "done");
  return (
    <ConsoleDocument title="Setup" path="/setup" view={view}>
      <Head
        title="Setup"
        says={
          <>
            {finished.length} of {steps.length} steps are done.{" "}
            {steps.every(({ status }) => status !== "to_do") ? (
              <>
                A run can start: <A href="/">the overview</A> has a dry run, which lists its recipients.
              </>
            ) : (
              "Changes in .env take effect when the service restarts; all else shows here at once."
            )}
          </>
        }
      />
      <ol class="steps">{steps.flatMap((step) => (step.status === "done" ? [] : [<StepItem step={step} />]))}</ol>
      <details>
        <summary>Finished steps</summary>
        <ol class="steps">
          {finished.map((step) => (
            <StepItem step={step} />
          ))}
        </ol>
      </details>
      {await renderCallers(view)}
      <Section id="test" title="Test the channels">
        <p>Sends a test message to each configured channel, and says what its network answered.</p>
        <ActionForm back="/setup" action="/console/channels/test">
          <button disabled={isUntestable}>Test channels</button>
          <Hindered hindrance={isUntestable ? { why: "No channel is configured" } : undefined} />
        </ActionForm>
      </Section>
    </ConsoleDocument>
  );
}

/** Shows the token of each caller: its scopes, when it expires, and the day of its last use. */
async function renderCallers(view: View<"tokens">): Promise<VNode | null> {
  const { tokens, last_uses } = await askOperation(view, listTokens, {});
  if (tokens.length === 0) return null;
  return (
    <Section id="callers" title="Who may do what">
      <Table
        label="Tokens of callers"
        columns={["Caller", "Token", "May", "Ends", "Last used"]}
        rowHead={null}
        rows={tokens.map(({ name, id, scopes, links, expires, last_used }) => [
          name,
          <code>{id}</code>,
          `${scopes?.join(", ") ?? "everything: its entry names no scopes"}${links === null ? "" : ` (clicks of ${links.join(", ")} only)`}`,
          expires === null ? "never" : <Time at={expires} />,
          last_used ?? (last_uses === "unknown" ? "unknown" : "never"),
        ])}
      />
    </Section>
  );
}

function StepItem({ step }: { readonly step: SetupStep }): VNode {
  const { title, status, says, env, command } = step;
  return (
    <li>
      <h2>
        {title} <Badge state={STATUS_BADGES[status]} />
      </h2>
      <p>{says}</p>
      {env === undefined ? null : <Lines where="In .env:" lines={env} />}
      {command === undefined ? null : <Lines where="In a terminal:" lines={[command]} />}
    </li>
  );
}

function Lines({ where, lines }: { readonly where: string; readonly lines: readonly string[] }): VNode {
  return (
    <>
      <p class="quiet">{where}</p>
      <pre>{lines.join("\n")}</pre>
    </>
  );
}

const STATUS_BADGES: Readonly<Record<SetupStep["status"], BadgeState>> = {
  done: ["good", "check", "done"],
  warning: ["warn", "triangleAlert", "warning"],
  to_do: ["warn", "triangleAlert", "to do"],
  left_out: ["neutral", "x", "left out"],
};
