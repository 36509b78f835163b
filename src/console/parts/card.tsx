/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";

/** One subject of the overview. */
export function Card({ title, children }: { readonly title: string; readonly children: ComponentChildren }): VNode {
  return (
    <section class="card">
      <h2>{title}</h2>
      {children}
    </section>
  );
}
