/** @jsxImportSource preact */
import type { ComponentChildren, ComponentProps, VNode } from "preact";
import { plain } from "../../history/words/sentence.ts";
import type { View } from "../page-context.ts";

interface ActionFormProps {
  readonly view: View;
  /** The page to come back to. */
  readonly back: string;
  readonly action: `/console/${string}`;
  /** Hidden fields. */
  readonly fields?: Readonly<Record<string, string>>;
  /** True if one of the fields is a file. */
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
  /** The text of the button that opens the confirmation. */
  readonly label: string;
  /** The effect of the action, which is shown above the button that performs it. */
  readonly says: ComponentChildren;
  /** True if something is lost for good. */
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
  /** The text of the choice of no value. Default: "all"; null if one of the values must be chosen. */
  readonly none?: string | null;
}

/** A choice of one of the values, or of none of them. */
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
