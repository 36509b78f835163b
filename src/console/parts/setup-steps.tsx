/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { readBacklog, type ChannelBacklog } from "../../delivery/channel-backlog-and-undelivered.ts";
import { readReadiness } from "../../outreach/run-and-dry-run-page-data.ts";
import { countInWords, formatUsd, grouped } from "../../platform/format-numbers-and-lists.ts";
import { Time } from "./time.tsx";
import type { View } from "../page-context.ts";
import { A } from "./links-forms-and-tabs.tsx";

export interface SetupStep {
  readonly title: string;
  /** `warning`: the step is done, but works only in part. `left_out`: the step is optional, and is not done. */
  readonly status: "done" | "warning" | "to_do" | "left_out";
  /** Words on the state of the setup step, or on what the operator has to do. */
  readonly says: ComponentChildren;
  /** Lines for `.env` that complete the setup step. */
  readonly env?: readonly string[];
  /** Command for a terminal that completes the setup step. */
  readonly command?: string;
}

/** Returns all steps of the setup in order. Some depend on the configuration, the others on the state of the log. */
export function setupSteps(
  view: View<"account" | "backups" | "contacts" | "deliveries" | "signals">,
): readonly SetupStep[] {
  const readiness = readReadiness(view, view.settings);
  return [
    xStep(view),
    accountStep(view),
    ...signalSteps(view),
    templateStep(view, readiness),
    ...optOutSteps(view, readiness),
    peopleStep(view, readiness),
    channelStep(view, "ads", "Ads", "Each click is reported to the Conversions API of Meta."),
    channelStep(view, "ads-openai", "Ads at OpenAI", "Each click is reported to OpenAI's Conversions API."),
    channelStep(view, "ads-snap", "Ads at Snap", "Each click is reported to Snap's Conversions API."),
    channelStep(
      view,
      "chat",
      "Team chat",
      `Clicks, notifications and alerts are posted to the team. ${sayReports(view)}`,
    ),
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

/** Returns the setup step about clocks, if one of them is wrong. */
function clockSteps({ live }: View): readonly SetupStep[] {
  const fault = live?.clockFault();
  return fault === undefined ? [] : [{ title: "Clock", status: "to_do", says: fault }];
}

/**
 * Returns the unfinished setup steps without which no run can start. It reads no recipients, because the overview also
 * shows earlier moments, for which folding the recipients takes long.
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

/**
 * Returns the setup step about X's stream of signals (notifications of new messages): how many messages it brought,
 * compared with those found only by reading the inbox.
 */
function signalSteps(view: View<"signals">): readonly SetupStep[] {
  const { hasSignals } = view.settings;
  const title = "Live signals";
  if (!hasSignals) return [];
  const { since, open, changed_at, details, by_stream: live, by_reading: read, chats, usd } = view.state("signals");
  if (changed_at === null) return [{ title, status: "to_do", says: "The stream has not opened yet." }];
  const refused = details.length === 0 ? "" : ` X refuses: ${details.join("; ")}.`;
  const says = (
    <>
      The stream {open ? "opened" : "did not open"} <Time at={changed_at} />.<bdi>{refused}</bdi>
      {since === null ? null : (
        <>
          {" "}
          Since <Time at={since} />, it found {countInWords(live.messages, "message")} of senders who wrote first or
          replied, and {countInWords(live.opt_outs, "opt-out")}; only reading found {grouped(read.messages)} and{" "}
          {grouped(read.opt_outs)}. {countInWords(chats, "message")} came in X Chat. All of it cost at most{" "}
          {formatUsd(usd)}.
        </>
      )}
    </>
  );
  return [{ title, status: open && details.length === 0 ? "done" : "to_do", says }];
}

function missingTemplate({ settings }: View): SetupStep {
  const says = "No message is configured, so no run can start. Variants are separated by a line of three hyphens.";
  return { title: "Message", status: "to_do", says, env: settings.parts.template.lines };
}

type Readiness = ReturnType<typeof readReadiness>;

function templateStep(view: View, { missingFields: missing }: Readiness): SetupStep {
  const title = "Message";
  const { template } = view.settings;
  if (template === undefined) return missingTemplate(view);
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

function optOutSteps({ settings }: View, { optOut: found }: Readiness): readonly SetupStep[] {
  if (!settings.parts.x.isConfigured || found === undefined) return [];
  const { isOffered, isSure, detail } = found;
  const status = isSure ? "done" : isOffered ? "warning" : "left_out";
  return [{ title: "Opt-outs", status, says: `${detail}.` }];
}

function peopleStep({ settings }: View, { known, unagreed, unproved }: Readiness): SetupStep {
  const title = "People";
  const { sources, requireConsent } = settings;
  if (known === 0 && sources.some((source) => source !== "list")) {
    return { title, status: "done", says: `No people yet; a run reads the sources ${sources.join(", ")}.` };
  }
  if (known === 0) {
    const says = (
      <>
        No people yet. Import a CSV or JSON file on <A href="/people">People</A>: one line for each, with{" "}
        <code>username</code> and <code>basis</code>, the reason why you may write to them.
      </>
    );
    return { title, status: "to_do", says, command: "reachlog recipients import FILE" };
  }
  const then = requireConsent ? "runs skip them" : "runs write to them, since REQUIRE_CONSENT is false";
  const says = (
    <>
      <A href="/people">{grouped(known)} known</A>,{" "}
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

type SettingsPart = View["settings"]["parts"]["webhook"];

function webhookSteps(view: View<"deliveries">): readonly SetupStep[] {
  const configured = view.settings.configured.filter((name) => name.startsWith("webhook"));
  const purpose = "Events of chosen types are posted to a program, signed.";
  if (configured.length === 0) return [channelStep(view, "webhook", "Webhook", purpose)];
  return configured.map((name) =>
    channelStep(view, name, name.replace("webhook", "Webhook").replace("-", " "), purpose),
  );
}

function channelStep(
  view: View<"deliveries">,
  name: ChannelBacklog["name"],
  title: string,
  purpose: string,
): SetupStep {
  const parts: Readonly<Partial<Record<string, SettingsPart>>> = view.settings.parts;
  const { isConfigured, lines } = parts[name] ?? view.settings.parts.webhook;
  if (!isConfigured) return { title, status: "left_out", says: purpose, env: lines };
  const { suspended } = readBacklog(view.state("deliveries"), name);
  if (suspended === null) return { title, status: "done", says: `Configured. ${purpose}` };
  const says = (
    <>
      Its network refuses it: <bdi>{suspended.detail}</bdi>. <A href="/deliveries">Deliveries</A> has the way on.
    </>
  );
  return { title, status: "to_do", says };
}

function sayReports({ settings: { report } }: View): string {
  return report.isAfterRun ? "Each run ends with a report." : "REPORT=run adds a report at the end of each run.";
}

function tokenStep({ settings, now }: View): SetupStep {
  const title = "Tokens of the API";
  const ends = settings.expiringTokens(now);
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

function backupIs(
  recorded: string,
  backup: { readonly position: number; readonly time: string } | null,
): ComponentChildren {
  if (backup === null) return `The log has no record that a backup was ${recorded}.`;
  return (
    <>
      The backup up to position {grouped(backup.position)} was {recorded} <Time at={backup.time} />.
    </>
  );
}
