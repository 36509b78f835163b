/** @jsxImportSource preact */
import { createContext, h, type ComponentProps, type VNode } from "preact";
import { hrefAt } from "../hrefs.ts";
import { Icon } from "./icon.tsx";

/**
 * Context of all links on a page: the earlier moment that the page is of, as the operator entered it. Undefined if the
 * page is of now.
 */
export const ShownMoment = createContext<string | undefined>(undefined);

/** A link that keeps the moment of the page. A link that chooses a moment is a plain `<a>`, marked by `data-moment`. */
export function A({ href, ...rest }: Omit<ComponentProps<"a">, "href"> & { readonly href: string }): VNode {
  return (
    <ShownMoment.Consumer>
      {(asOf) => h("a", { href: asOf === undefined ? href : hrefAt(href, asOf), ...rest })}
    </ShownMoment.Consumer>
  );
}

/** A link that opens the import of a list as a dialog; without script, as a page. */
export function ImportLink({ look, label }: { readonly look: string; readonly label: string }): VNode {
  return (
    <A class={look} href="/people/import" data-import>
      <Icon name="upload" />
      {label}
    </A>
  );
}

/** A form that leads to another page, and keeps the moment of the present one. */
export function PageForm({ children, ...rest }: Omit<ComponentProps<"form">, "method">): VNode {
  return (
    <form {...rest} method="get">
      {children}
      <ShownMoment.Consumer>
        {(asOf) => (asOf === undefined ? null : <input type="hidden" name="as_of" value={asOf} />)}
      </ShownMoment.Consumer>
    </form>
  );
}

interface OtherFieldsProps {
  readonly query: URLSearchParams;
  /** Names of parameters to leave out: those of the form's own fields, and those that they replace. */
  readonly names?: readonly string[];
}

/**
 * Renders hidden inputs that keep the page's other query parameters when a form is submitted, because a GET form sends
 * only its own fields. Leaves out `as_of`, which PageForm or a field of the form sends.
 */
export function OtherFields({ query, names = [] }: OtherFieldsProps): VNode {
  return (
    <>
      {[...query].map(([name, value]) =>
        name === "as_of" || names.includes(name) ? null : <input type="hidden" name={name} value={value} />,
      )}
    </>
  );
}

interface TabsProps {
  readonly label: string;
  readonly tabs: readonly (readonly [href: string, words: string, isCurrent: boolean])[];
}

/** Links to parts of a page, one of which it shows. */
export function Tabs({ label, tabs }: TabsProps): VNode {
  return (
    <ul class="tabs" aria-label={label}>
      {tabs.map(([href, words, isCurrent]) => (
        <li>
          <A href={href} aria-current={isCurrent ? "true" : undefined}>
            {words}
          </A>
        </li>
      ))}
    </ul>
  );
}
