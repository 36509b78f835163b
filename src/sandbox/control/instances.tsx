/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Instances } from "../instances.ts";

/** The services of one log, each with a button that kills it, or starts it again. */
export function InstanceList({ instances }: { readonly instances: Instances }): VNode {
  return (
    <section aria-labelledby="instances">
      <h2 id="instances">Instances</h2>
      <p>
        Each of them serves the same log. One that is killed hands nothing over: another takes its part within 17
        seconds, and a run goes on with the next trigger.
      </p>
      <ul class="instances">
        {instances.list().map(({ url, isRunning }) => (
          <li>
            <form method="post" action={`/_sandbox/instances/${isRunning ? "kill" : "start"}`}>
              <input type="hidden" name="page" value="/" />
              <input type="hidden" name="url" value={url} />
              <span class={`status ${isRunning ? "green" : "red"}`}>
                <a href={url}>{url}</a> {isRunning ? "runs" : "was killed"}
              </span>{" "}
              <button aria-label={`${isRunning ? "Kill" : "Start"} ${url}`}>{isRunning ? "Kill" : "Start"}</button>
            </form>
          </li>
        ))}
      </ul>
    </section>
  );
}
