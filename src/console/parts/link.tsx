/** @jsxImportSource preact */
import { createContext, h, type ComponentProps, type VNode } from "preact";
import { hrefAt } from "../hrefs.ts";

/** The earlier moment that the page is of, as the operator entered it. Undefined if the page is of now. */
export const ShownMoment = createContext<string | undefined>(undefined);

/** A link that keeps the moment of the page. A link that chooses a moment is a plain `<a>`, marked by `data-moment`. */
export function A({ href, ...rest }: Omit<ComponentProps<"a">, "href"> & { readonly href: string }): VNode {
  return (
    <ShownMoment.Consumer>
      {(asOf) => h("a", { href: asOf === undefined ? href : hrefAt(href, asOf), ...rest })}
    </ShownMoment.Consumer>
  );
}

/** A form that leads to a page, and keeps the moment of this one. */
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
