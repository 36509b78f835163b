/** @jsxImportSource preact */
import type { ComponentChildren, ComponentProps, VNode } from "preact";
import { plain } from "../../history/words/sentence.ts";
import type { View } from "../page-context.ts";

interface ActionFormProps {
  readonly view: View;
  /** The page to come back to. */
  readonly back: string;
  readonly action: `/console/${string}`;
  /** What is not filled in by hand. */
  readonly fields?: Readonly<Record<string, string>>;
  /** One of the fields is a file. */
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
  /** On the button; behind it stands what the action does, and the button that does it. */
  readonly label: string;
  readonly says: ComponentChildren;
  /** Something is lost for good. */
  readonly isDangerous?: boolean;
}

/** An action that asks once before it is done, without script. */
export function ConfirmedAction({
  label,
  says,
  isDangerous = false,
  children,
  ...form
}: ConfirmedActionProps): VNode | null {
  if (form.view.formToken === undefined) return null;
  return (
    <details class={isDangerous ? "confirmed dangerous" : "confirmed"}>
      <summary>{label}</summary>
      <p>{says}</p>
      <ActionForm {...form}>{children}</ActionForm>
    </details>
  );
}

/** An input under its label. */
export function Field({ label, ...input }: ComponentProps<"input"> & { readonly label: string }): VNode {
  return (
    <label>
      {label} <input {...input} />
    </label>
  );
}

interface SelectProps<Value extends string> {
  readonly name: string;
  readonly label: string;
  readonly values: readonly Value[];
  readonly chosen?: string | undefined;
  /** Default: the values themselves, with spaces. */
  readonly inWords?: (value: Value) => string;
  /** What the choice of no value says. Default: "all"; null: one of the values has to be chosen. */
  readonly none?: string | null;
}

/** One of these values, or none of them. */
export function Select<Value extends string>({
  name,
  label,
  values,
  chosen,
  inWords = plain,
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
