/** @jsxImportSource preact */
import type { VNode } from "preact";
import { ActionForm } from "../parts/action-form.tsx";
import { ConsoleDocument, Section } from "../document.tsx";
import { Badge, type BadgeState } from "../parts/icon.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { toTokenId } from "../../config/tokens.ts";
import { isoTime } from "../../platform/clock.ts";
import { setupSteps, type SetupStep } from "../parts/setup-steps.tsx";
import type { View } from "../page-context.ts";

export function setupPage(view: View): VNode {
  const steps = setupSteps(view);
  const finished = steps.filter(({ status }) => status === "done");
  return (
    <ConsoleDocument title="Setup" path="/setup" view={view}>
      <h1>Setup</h1>
      <p>
        {finished.length} of {steps.length} steps are done.{" "}
        {steps.every(({ status }) => status !== "to_do") ? (
          <>
            A run can start: <a href="/">the overview</a> has a dry run, which lists its recipients.
          </>
        ) : (
          "Changes in .env take effect when the service restarts; all else shows here at once."
        )}
      </p>
      <ol class="steps">{steps.flatMap((step) => (step.status === "done" ? [] : [<StepItem step={step} />]))}</ol>
      <details>
        <summary>Finished steps</summary>
        <ol class="steps">
          {finished.map((step) => (
            <StepItem step={step} />
          ))}
        </ol>
      </details>
      <CallersSection view={view} />
      <Section id="test" title="Test the channels">
        <p>Sends a test message to each configured channel, and says what its network answered.</p>
        <ActionForm view={view} back="/setup" action="/console/channels/test">
          <button>Test channels</button>
        </ActionForm>
      </Section>
    </ConsoleDocument>
  );
}

/** The scopes of each caller's token, when it expires, and the day of its last use. */
function CallersSection({ view }: { readonly view: View }): VNode | null {
  const tokens = view.settings.tokens();
  const { usedOn } = view.state("tokens");
  if (tokens.length === 0) return null;
  return (
    <Section id="callers" title="Who may do what">
      <Table
        label="Tokens of callers"
        columns={["Caller", "Token", "May", "Ends", "Last used"]}
        rowHead={null}
        rows={tokens.map(({ name, sha256, scopes, links, expiresAt }) => [
          name,
          <code>{toTokenId(sha256)}</code>,
          `${scopes?.join(", ") ?? "everything: its entry names no scopes"}${links === undefined ? "" : ` (clicks of ${links.join(", ")} only)`}`,
          expiresAt === undefined ? "never" : <Time at={isoTime(expiresAt)} />,
          usedOn.get(toTokenId(sha256)) ?? "never",
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
  to_do: ["warn", "triangle-alert", "to do"],
  left_out: ["neutral", "x", "left out"],
};
