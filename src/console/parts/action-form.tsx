/** @jsxImportSource preact */
import { createHash } from "node:crypto";
import {
  createContext,
  isValidElement,
  toChildArray,
  type ComponentChildren,
  type ComponentProps,
  type VNode,
} from "preact";
import { useContext } from "preact/hooks";
import { addressWith } from "../hrefs.ts";
import { useView, type NextStep } from "../page-context.ts";
import { A, HiddenFields } from "./links-forms-and-tabs.tsx";
import { Time } from "./time.tsx";

interface ActionFormProps {
  /** Page to which the browser returns after the action. */
  readonly back: string;
  readonly action: `/console/${string}`;
  /** Hidden fields of the form, by name. */
  readonly fields?: Readonly<Record<string, string>>;
  /** True if one of the form's fields is a file. */
  readonly sendsFile?: boolean;
  readonly children: ComponentChildren;
}

/** A form that performs an action. Renders nothing for a browser that may only look. */
export function ActionForm({ back, action, fields, sendsFile = false, children }: ActionFormProps): VNode | null {
  const { formToken } = useView();
  if (formToken === undefined) return null;
  return (
    <form class="action" method="post" action={action} encType={sendsFile ? "multipart/form-data" : undefined}>
      <HiddenFields of={Object.entries({ form_token: formToken, back, ...fields })} />
      {children}
    </form>
  );
}

/** Why an action would be refused now. */
export interface Hindrance {
  readonly why: string;
  /** Time from which the action is possible by itself, ISO 8601. Undefined if it is not known. */
  readonly until?: string | undefined;
  /** Link to what makes the action possible. */
  readonly nextStep?: NextStep;
}

/** Says why the button before it is disabled. Renders nothing for a button that is not disabled. */
export function Hindered({ hindrance }: { readonly hindrance: Hindrance | undefined }): VNode | null {
  if (hindrance === undefined) return null;
  const { why, until, nextStep } = hindrance;
  return (
    <small class="quiet">
      {why}
      <Time before=" until " at={until} />.{nextStep && <> {<A href={nextStep.href}>{nextStep.label}</A>}</>}
    </small>
  );
}

interface ConfirmedActionProps extends ActionFormProps {
  /** Text of the button that opens the confirmation. */
  readonly label: string;
  /** Title of the confirmation. Default: the label with a question mark. */
  readonly question?: ComponentChildren;
  /** Words on the effect of the action, shown above the button that performs it. */
  readonly says: ComponentChildren;
  /** True if the action deletes data that cannot be restored. */
  readonly isDangerous?: boolean;
  /** True if the action would be refused now. */
  readonly isDisabled?: boolean;
}

/** The confirmation that is rendered as a page of its own, for a browser without script. */
export interface AskedConfirmation {
  /** Value of the parameter `confirm` in the page's address. */
  readonly id: string;
  /**
   * Title and content of the confirmation. The action whose id is `id` sets this field while the page renders;
   * undefined if the page has no such action.
   */
  found?: { readonly title: string; readonly content: VNode };
}

/**
 * Tells all actions of a page which confirmation is wanted, so that the action with its id provides it. Undefined on a
 * page that shows no confirmation.
 */
export const Asked = createContext<AskedConfirmation | undefined>(undefined);

/** Returns the id of an action's confirmation, by which the parameter `confirm` of a page's address names it. */
export function confirmationId(action: ActionFormProps["action"], fields: ActionFormProps["fields"]): string {
  const hash = createHash("sha256").update(JSON.stringify([action, fields]));
  return `confirm-${hash.digest("hex").slice(0, 12)}`;
}

/** An action that asks once before it is performed: in a dialog or, without script, on a page with the same form. */
export function ConfirmedAction(props: ConfirmedActionProps): VNode | null {
  const { label, isDangerous = false, isDisabled = false, children, action, fields } = props;
  const view = useView();
  const asked = useContext(Asked);
  if (view.formToken === undefined) return null;
  const id = confirmationId(action, fields);
  const isPrimary = toChildArray(children).some((child) => isButton(child) && child.props.class === "primary");
  const look = `button${isPrimary ? " primary" : ""}${isDangerous ? " dangerous" : ""}`;
  if (isDisabled) {
    return (
      <button class={look} type="button" disabled>
        {label}
      </button>
    );
  }
  const href = view.isAnswer === true ? `#${id}` : addressWith("", view.query, { confirm: id });
  if (asked?.id === id) asked.found = { title: label, content: <Confirmation {...props} Heading="h1" /> };
  return (
    <>
      <a class={look} href={href} data-dialog={id} aria-haspopup="dialog">
        {label}
      </a>
      <dialog id={id} class="confirm" aria-labelledby={`${id}-title`}>
        <Confirmation {...props} Heading="h2" id={`${id}-title`} />
      </dialog>
    </>
  );
}

interface ConfirmationProps extends ConfirmedActionProps {
  readonly Heading: "h1" | "h2";
  /** Id of the heading. */
  readonly id?: string;
}

/** The question, the action's effect, and the form. Cancel has the focus, and comes before the button that acts. */
export function Confirmation(props: ConfirmationProps): VNode {
  const { label, question = `${label.replace("…", "")}?`, says, isDangerous, children, Heading, id, ...form } = props;
  const { query, isAnswer } = useView();
  const parts = toChildArray(children);
  return (
    <>
      <Heading id={id}>{question}</Heading>
      <div class="says">{says}</div>
      <ActionForm {...form}>
        {parts.filter((part) => !isButton(part) && !isOutput(part))}
        <Answer
          back={isAnswer === true ? "#main" : addressWith("", query, { confirm: undefined, back: undefined })}
          {...{ isDangerous }}
        >
          {parts.filter((part) => isButton(part) || isOutput(part))}
        </Answer>
      </ActionForm>
    </>
  );
}

interface AnswerProps {
  /** Address of the page without the confirmation. */
  readonly back: string;
  readonly isDangerous?: boolean | undefined;
  readonly children: ComponentChildren;
}

/**
 * Last part of a form: a link that cancels, and the children, which are the button that performs the action and the
 * numbers that the form shows.
 */
export function Answer({ back, isDangerous = false, children }: AnswerProps): VNode {
  return (
    <div class={isDangerous ? "answer dangerous" : "answer"}>
      <a class="button" href={back} data-cancel>
        Cancel
      </a>
      {children}
    </div>
  );
}

function isButton(child: ReturnType<typeof toChildArray>[number]): child is VNode<ComponentProps<"button">> {
  return isValidElement(child) && child.type === "button";
}

function isOutput(child: ReturnType<typeof toChildArray>[number]): boolean {
  return isValidElement(child) && child.type === "output";
}

/** An input under its label. */
export function Field({ label, ...input }: ComponentProps<"input"> & { readonly label: string }): VNode {
  return (
    <label>
      {label} <input {...input} />
    </label>
  );
}

/** A field for a file with a list of people. */
export function FileField({ describedBy }: { readonly describedBy: string }): VNode {
  const accept = ".csv,.tsv,.txt,.json,.jsonl,.ndjson";
  return <Field label="File" type="file" name="file" accept={accept} required aria-describedby={describedBy} />;
}

/** Writes a word of a closed set, such as `recipient_closed`, with spaces. */
export function toSpaces(word: string): string {
  return word.replaceAll("_", " ");
}

/** Words that the console shows in place of values whose own names do not explain what the values mean. */
export const CHOICE_WORDS: Readonly<Record<string, string>> = {
  dm_first: "wrote first",
  opt_in: "opted in",
  none: "no consent",
  list: "imported",
  inbound: "wrote first",
};

interface SelectProps<Value extends string> {
  readonly name: string;
  readonly label: string;
  readonly values: readonly Value[];
  readonly chosen?: string | undefined;
  /** Returns the words for a value. Default: those of {@link CHOICE_WORDS}, or the value itself, with spaces. */
  readonly inWords?: (value: Value) => string;
  /** Label of the choice for no value. Default: "all"; null if a value must be chosen. */
  readonly none?: string | null;
}

/** Drop-down list of values, mostly with a choice for no value. */
export function Select<Value extends string>(props: SelectProps<Value>): VNode {
  const {
    name,
    label,
    values,
    chosen,
    inWords = (value) => CHOICE_WORDS[value] ?? toSpaces(value),
    none = "all",
  } = props;
  return (
    <label>
      {label}{" "}
      <select name={name}>
        {none === null ? null : <option value="">{none}</option>}
        {values.map((value) => (
          <option value={value} selected={value === chosen}>
            {inWords(value)}
          </option>
        ))}
      </select>
    </label>
  );
}

type LinesProps = Omit<ComponentProps<"textarea">, "label" | "value"> & {
  readonly label: string;
  readonly value: string;
};

/** A field of several lines under its label. */
export function Lines({ label, value, ...area }: LinesProps): VNode {
  return (
    <label class="area">
      {label} <textarea {...area}>{value}</textarea>
    </label>
  );
}
