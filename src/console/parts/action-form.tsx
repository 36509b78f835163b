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
import { addressWith } from "../hrefs.ts";
import type { View } from "../page-context.ts";

interface ActionFormProps {
  readonly view: View;
  /** Page to come back to after the action. */
  readonly back: string;
  readonly action: `/console/${string}`;
  /** Hidden fields of the form, by name. */
  readonly fields?: Readonly<Record<string, string>>;
  /** True if one of the form's fields is a file. */
  readonly sendsFile?: boolean;
  readonly children: ComponentChildren;
}

/** A form that performs an action; renders nothing for a read-only viewer. */
export function ActionForm(props: ActionFormProps): VNode | null {
  const { view, back, action, fields = {}, sendsFile = false, children } = props;
  if (view.formToken === undefined) return null;
  const hidden = Object.entries({ form_token: view.formToken, back, ...fields });
  return (
    <form class="action" method="post" action={action} encType={sendsFile ? "multipart/form-data" : undefined}>
      {hidden.map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      {children}
    </form>
  );
}

interface ConfirmedActionProps extends ActionFormProps {
  /** Text of the button that opens the confirmation. */
  readonly label: string;
  /** Title of the confirmation. Default: the label with a question mark. */
  readonly question?: ComponentChildren;
  /** The effect of the action, which is shown above the button that performs it. */
  readonly says: ComponentChildren;
  /** True if the action loses something for good. */
  readonly isDangerous?: boolean;
}

/** A confirmation that a page renders alone, for a browser without script. */
export interface AskedConfirmation {
  /** Parameter `confirm` of the page's address. */
  readonly id: string;
  /** Set while the page renders, if it has this confirmation. */
  found?: { readonly title: string; readonly content: VNode };
}

/** Context of the confirmation to find in a page. Undefined while a page renders normally. */
export const Asked = createContext<AskedConfirmation | undefined>(undefined);

/** An action that asks once before it is done: in a dialog or, without script, on a page with the same form. */
export function ConfirmedAction(props: ConfirmedActionProps): VNode | null {
  const { label, isDangerous = false, children, view, action, fields } = props;
  if (view.formToken === undefined) return null;
  const id = `confirm-${createHash("sha256")
    .update(JSON.stringify([action, fields]))
    .digest("hex")
    .slice(0, 12)}`;
  const isPrimary = toChildArray(children).some((child) => isButton(child) && child.props.class === "primary");
  const href = view.isAnswer === true ? `#${id}` : addressWith("", view.query, { confirm: id });
  return (
    <Asked.Consumer>
      {(asked) => {
        if (asked?.id === id) asked.found = { title: label, content: <Confirmation {...props} Heading="h1" /> };
        const look = `button${isPrimary ? " primary" : ""}${isDangerous ? " dangerous" : ""}`;
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
      }}
    </Asked.Consumer>
  );
}

interface ConfirmationProps extends ConfirmedActionProps {
  readonly Heading: "h1" | "h2";
  /** Id of the heading. */
  readonly id?: string;
}

/** The question, what the action does, and the form. Cancel comes before the button that acts, and has the focus. */
function Confirmation(props: ConfirmationProps): VNode {
  const {
    label,
    question = `${label.replace("…", "")}?`,
    says,
    isDangerous = false,
    children,
    Heading,
    id,
    ...form
  } = props;
  const { query, isAnswer } = form.view;
  const parts = toChildArray(children);
  return (
    <>
      <Heading id={id}>{question}</Heading>
      <div class="says">{says}</div>
      <ActionForm {...form}>
        {parts.filter((part) => !isButton(part))}
        <div class={isDangerous ? "answer dangerous" : "answer"}>
          <a
            class="button"
            href={isAnswer === true ? "#main" : addressWith("", query, { confirm: undefined })}
            data-cancel
          >
            Cancel
          </a>
          {parts.filter(isButton)}
        </div>
      </ActionForm>
    </>
  );
}

function isButton(child: ReturnType<typeof toChildArray>[number]): child is VNode<ComponentProps<"button">> {
  return isValidElement(child) && child.type === "button";
}

/** An input under its label. */
export function Field({ label, ...input }: ComponentProps<"input"> & { readonly label: string }): VNode {
  return (
    <label>
      {label} <input {...input} />
    </label>
  );
}

/** A field for a list of people. */
export function FileField({ describedBy }: { readonly describedBy: string }): VNode {
  return (
    <label>
      File{" "}
      <input
        type="file"
        name="file"
        accept=".csv,.tsv,.txt,.json,.jsonl,.ndjson"
        required
        aria-describedby={describedBy}
      />
    </label>
  );
}

/** Writes a word of a closed set, such as `recipient_closed`, with spaces. */
export function toSpaces(word: string): string {
  return word.replaceAll("_", " ");
}

interface SelectProps<Value extends string> {
  readonly name: string;
  readonly label: string;
  readonly values: readonly Value[];
  readonly chosen?: string | undefined;
  /** Returns the words for a value. Default: the value itself, with spaces. */
  readonly inWords?: (value: Value) => string;
  /** Text of the choice that stands for no value. Default: "all"; null if one of the values must be chosen. */
  readonly none?: string | null;
}

/** Drop-down list of values, or of none of them. */
export function Select<Value extends string>({
  name,
  label,
  values,
  chosen,
  inWords = toSpaces,
  none = "all",
}: SelectProps<Value>): VNode {
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
