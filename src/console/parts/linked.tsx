/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";

interface LinkedProps {
  /** Undefined: there is no page to lead to. */
  readonly href: string | undefined;
  readonly children: ComponentChildren;
}

/** A link where there is a page to lead to, else what would stand in it. */
export function Linked({ href, children }: LinkedProps): VNode {
  return href === undefined ? <>{children}</> : <a href={href}>{children}</a>;
}
