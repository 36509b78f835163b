/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { isWebhook, type ChannelName } from "../../../events/channel.ts";
import { findChannel } from "../../../projections/deliveries.ts";
import { findMissingEvidence } from "../../../projections/consent.ts";
import type { RecordedBackup } from "../../../projections/backups.ts";
import { describeExpiries } from "../../config/tokens.ts";
import { isSkewed, SKEW_REMEDY, skewInWords } from "../../log/log-clock.ts";
import { checkOptOut } from "../../template/opt-out.ts";
import { missingPlaceholders } from "../../template/template.ts";
import { countInWords, grouped } from "../../platform/counts-and-lists.ts";
import { Time } from "./time.tsx";
import type { View } from "../page-context.ts";
import { A } from "./link.tsx";

export interface SetupStep {
  readonly title: string;
  readonly status: "done" | "to_do" | "left_out";
  /** The state of the step, or what to do. */
  readonly says: ComponentChildren;
  /** Lines for `.env`. */
  readonly env?: readonly string[];
  /** A command for a terminal. */
  readonly command?: string;
}

/** All steps of the setup in order. Some depend on the configuration, others on what the log knows. */
export function setupSteps(view: View<"account" | "backups" | "contacts" | "deliveries">): readonly SetupStep[] {
  return [
    xStep(view),
    accountStep(view),
    templateStep(view),
    ...optOutSteps(view),
    peopleStep(view),
    channelStep(view, "ads", "Ads", "Each click is reported to the Conversions API of Meta."),
    channelStep(view, "chat", "Team chat", "Clicks, notifications and alerts are posted to the team."),
    channelStep(
      view,
      "messaging",
      "Messaging",
      "Clicks and messages are sent to a chat of Telegram, LINE or WhatsApp.",
    ),
    ...webhookSteps(view),
    tokenStep(view),
    dayStep(view),
    backupStep(view),
    ...clockSteps(view),
  ];
}

/** A step only if a clock is wrong. */
function clockSteps({ live }: View): readonly SetupStep[] {
  const skewMs = live?.skewMs() ?? 0;
  if (!isSkewed(skewMs)) return [];
  return [{ title: "Clock", status: "to_do", says: `No run starts: ${skewInWords(skewMs)}; ${SKEW_REMEDY}.` }];
}

/**
 * The unfinished steps without which no run can start. Does not read the recipients: the overview calls this, also for
 * moments long ago.
 */
export function missingForRun(view: View<"account">): readonly SetupStep[] {
  const steps = [
    xStep(view),
    accountStep(view),
    ...(view.settings.template === undefined ? [missingTemplate(view)] : []),
  ];
  return steps.filter(({ status }) => status !== "done");
}

function xStep({ settings }: View): SetupStep {
  const { isConfigured, lines } = settings.parts.x;
  if (isConfigured) return { title: "X app", status: "done", says: "Its client id is configured." };
  const says = (
    <>
      Make an app in X's developer console, of the type "Web app, automated app or bot", with the callback{" "}
      <code>{settings.callback}</code>.
    </>
  );
  return { title: "X app", status: "to_do", says, env: lines };
}

function accountStep(view: View<"account">): SetupStep {
  const title = "X account";
  const { user, authorized } = view.state("account");
  if (user !== null && authorized) {
    const says = (
      <>
        Messages are sent as <bdi>@{user.username}</bdi>.
      </>
    );
    return { title, status: "done", says };
  }
  if (!view.settings.parts.x.isConfigured) {
    return { title, status: "to_do", says: "It can be authorized once the X app is configured." };
  }
  const says = (
    <>
      {user === null ? null : (
        <>
          X no longer accepts the authorization of <bdi>@{user.username}</bdi>.{" "}
        </>
      )}
      <A href="/social/auth">Authorize {user === null ? "an X account" : "it again"}</A>: X asks for consent and sends
      you back.
    </>
  );
  return { title, status: "to_do", says };
}

function missingTemplate({ settings }: View): SetupStep {
  const says = "No message is configured, so no run can start. Variants are separated by a line of three hyphens.";
  return { title: "Message", status: "to_do", says, env: settings.parts.template.lines };
}

function templateStep(view: View<"contacts">): SetupStep {
  const title = "Message";
  const { template } = view.settings;
  if (template === undefined) return missingTemplate(view);
  const { people, fields } = view.state("contacts");
  const missing = people.size === 0 ? [] : missingPlaceholders(template, fields.keys());
  if (missing.length > 0) {
    const says = `No recipient can get it: none has ${missing.join(", ")}. Import that column, or give it a fallback, such as {{${missing[0]}|…}}.`;
    return { title, status: "to_do", says };
  }
  const { name, variants } = template;
  const called = name === undefined ? "It is configured" : <bdi>{name}</bdi>;
  const says = (
    <>
      {called}, in {countInWords(variants.length, "variant")}.
    </>
  );
  return { title, status: "done", says };
}

function optOutSteps({ settings: { parts, template } }: View): readonly SetupStep[] {
  if (!parts.x.isConfigured || template === undefined) return [];
  const { isLinked, detail } = checkOptOut(template);
  return [{ title: "Opt-outs", status: isLinked ? "done" : "left_out", says: `${detail}.` }];
}

function peopleStep(view: View<"contacts">): SetupStep {
  const title = "People";
  const { people } = view.state("contacts");
  const { sources, requireConsent } = view.settings;
  if (people.size === 0 && sources.some((source) => source !== "list")) {
    return { title, status: "done", says: `No people yet; a run reads the sources ${sources.join(", ")}.` };
  }
  if (people.size === 0) {
    const says = (
      <>
        No people yet. Import a CSV or JSON file on <A href="/people">People</A>: one line for each, with{" "}
        <code>username</code> and <code>basis</code>, the reason why you may write to them.
      </>
    );
    return { title, status: "to_do", says, command: "reachlog recipients import FILE" };
  }
  let [unagreed, unproved] = [0, 0];
  for (const contact of people.values()) {
    const [missing] = findMissingEvidence(contact);
    if (missing === "basis") unagreed++;
    else if (missing !== undefined) unproved++;
  }
  const then = requireConsent ? "runs skip them" : "runs write to them, since REQUIRE_CONSENT is false";
  const says = (
    <>
      <A href="/people">{grouped(people.size)} known</A>,{" "}
      {unagreed === 0 ? (
        "all of them with consent."
      ) : (
        <>
          <A href="/people?basis=none">{grouped(unagreed)} without consent</A>: {then}.
        </>
      )}
      {requireConsent !== "evidence" || unproved === 0
        ? ""
        : ` ${grouped(unproved)} with consent, but without its date or source: runs skip them.`}
    </>
  );
  return { title, status: "done", says };
}

function webhookSteps(view: View<"deliveries">): readonly SetupStep[] {
  const configured = view.settings.configured.filter(isWebhook);
  const purpose = "Events of chosen types are posted to a program, signed.";
  if (configured.length === 0) return [channelStep(view, "webhook", "Webhook", purpose)];
  return configured.map((name) =>
    channelStep(view, name, name.replace("webhook", "Webhook").replace("-", " "), purpose),
  );
}

function channelStep(view: View<"deliveries">, name: ChannelName, title: string, purpose: string): SetupStep {
  const { isConfigured, lines } = view.settings.parts[isWebhook(name) ? "webhook" : name];
  if (!isConfigured) return { title, status: "left_out", says: purpose, env: lines };
  const { suspended } = findChannel(view.state("deliveries"), name);
  if (suspended === null) return { title, status: "done", says: `Configured. ${purpose}` };
  const says = (
    <>
      Its network refuses it: <bdi>{suspended.detail}</bdi>. <A href="/deliveries">Deliveries</A> has the way on.
    </>
  );
  return { title, status: "to_do", says };
}

function tokenStep({ settings, now }: View): SetupStep {
  const title = "Tokens of the API";
  const ends = describeExpiries(settings.tokens(), now);
  if (ends.length > 0) return { title, status: "to_do", says: `Soon callers will be refused: ${ends.join("; ")}.` };
  if (settings.wantsToken()) return { title, status: "done", says: "Callers and this console need one." };
  const says =
    "Callers need no token, and endpoints that always need one are closed. That is fine for trials on this machine.";
  return { title, status: "left_out", says, command: "reachlog token new NAME" };
}

function dayStep({ settings: { timezone, dailyLimit, window } }: View): SetupStep {
  const says = (
    <>
      {grouped(dailyLimit)} messages a day, which begins at midnight in <bdi>{timezone}</bdi>.{" "}
      <code>QUOTA_TIMEZONE</code> in <code>.env</code> changes that. They go out{" "}
      {window === undefined ? "at any time" : <bdi>{window.text}</bdi>}; <code>SEND_WINDOW</code> changes that.
    </>
  );
  return { title: "The day", status: "done", says };
}

function backupStep(view: View<"backups">): SetupStep {
  const { made, rehearsed } = view.state("backups");
  const says = (
    <>
      {backupIs("made", made)} {backupIs("rehearsed", rehearsed)}
    </>
  );
  const command = "reachlog backup FOLDER\nreachlog restore FOLDER --rehearse";
  return { title: "Backup", status: made === null ? "left_out" : "done", says, command };
}

function backupIs(recorded: string, backup: RecordedBackup | null): ComponentChildren {
  if (backup === null) return `The log has no record that a backup was ${recorded}.`;
  return (
    <>
      The backup up to position {grouped(backup.position)} was {recorded} <Time at={backup.time} />.
    </>
  );
}
